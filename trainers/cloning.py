"""Behaviour cloning: supervised training on the assistant's turns of logged dialogues.

It gives a small model the format and the moves of a task before reinforcement learning, and it is a baseline of its
own. Rows are laid out by the same function as rollouts (``conversation.encode``); only the assistant's tokens and its
end of turn carry loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from duologue.disk import explains_full_disk
from duologue.engines.chat import ChatFormat
from duologue.engines.models import LoadedModel, load_model
from duologue.errors import DuologueError
from duologue.simulators.logs import read_logs
from duologue.trainers.cloning_config import CloningConfig
from duologue.trainers.conversation import Conversation, Reply, TokenRow, encode
from duologue.trainers.processes import refuse_processes
from duologue.trainers.supervised import Row, fit
from duologue.types import Message, alternates

__all__ = ["CloningConfig", "as_reply", "clone", "training_rows"]


@explains_full_disk("run the same command: it trains anew, over what is half written.")
def clone(
    config: CloningConfig, dialogues: Sequence[Sequence[Message]] | None = None, loaded: LoadedModel | None = None
) -> Path:
    """Train on dialogues and save the result.

    Args:
        config: everything that is not an object.
        dialogues: each starts with the user and takes turns; a last user turn carries no loss and is left out.
            None reads the file ``config.dialogues``; logs in which only the user spoke have nothing to clone.
        loaded: a model in memory; the default loads ``config.model``.

    Returns:
        The output folder, which ``load_model`` takes.

    Raises:
        DuologueError: if there are no dialogues, or one is malformed or longer than ``max_total_tokens``, or several
            processes were launched.
    """
    refuse_processes("Cloning", "Run it without accelerate launch.")
    dialogues = _logged(config) if dialogues is None else dialogues
    loaded = loaded or load_model(config.model, dtype=config.dtype)
    rows = training_rows(dialogues, ChatFormat(loaded.tokenizer, config.system_prompt), config.max_total_tokens)
    fit(config, rows, loaded)
    return Path(config.output)


def _logged(config: CloningConfig) -> list[tuple[Message, ...]]:
    if not config.dialogues:
        raise DuologueError("There are no dialogues to clone. Set dialogues to a JSONL file of logs, or pass some.")
    return [dialogue.messages for dialogue in read_logs(config.dialogues) if len(dialogue.messages) > 1]


def training_rows(dialogues: Sequence[Sequence[Message]], chat: ChatFormat, max_total_tokens: int) -> list[Row]:
    """Return one row per dialogue."""
    if not dialogues:
        raise DuologueError("There are no dialogues to train on. Play some with duologue rollout, or load logs.")
    rows = []
    for i, messages in enumerate(dialogues):
        row = _layout(messages, chat, i)
        if len(row.ids) > max_total_tokens:
            raise DuologueError(
                f"Dialogue {i} has {len(row.ids)} tokens, over max_total_tokens {max_total_tokens}. Raise the limit or "
                "leave the dialogue out; it is not cut silently."
            )
        rows.append({"input_ids": row.ids, "completion_mask": [0] * len(row.prompt_ids) + row.mask})
    return rows


def _layout(messages: Sequence[Message], chat: ChatFormat, i: int) -> TokenRow:
    if len(messages) < 2 or not alternates(messages):
        raise DuologueError(f"Dialogue {i} must start with the user and take turns. Merge or drop its other messages.")
    replies = [as_reply(m["content"], chat) for m in messages[1::2]]
    users = [m["content"] for m in messages[2::2]]
    return encode(Conversation((messages[0],), tuple(replies), tuple(users[: len(replies) - 1])), chat)


def as_reply(text: str, chat: ChatFormat) -> Reply:
    """Return a logged text as a reply whose tokens, end of turn included, are to be learned."""
    ids = (*chat.text_ids(text), chat.end_of_turn_id)
    return Reply(text, ids, (0.0,) * len(ids))
