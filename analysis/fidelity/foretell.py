"""How well a user that is a language model here foretells what people wrote: nats per token, by turn, bits per byte."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from duologue.simulators.base import Simulator
from duologue.simulators.guards import GuardedUser
from duologue.simulators.logs import LoggedDialogue
from duologue.types import Dialogue

if TYPE_CHECKING:
    from duologue.simulators.calibrated import CalibratedUser
    from duologue.simulators.calibrated_layout import UserRow
    from duologue.simulators.prompted import PromptedUser

_BEFORE = '{"thought": "", "message": "'


def foretold(simulator: Simulator, dialogues: Sequence[LoggedDialogue]) -> dict[str, Any] | None:
    """Return held-out NLL of people's turns under a user, or None if it has no probabilities (scripted, remote).

    A calibrated user is scored in its own layout, decisions to leave included. A prompted local model reads its own
    prompt and an empty thought, and is scored on the JSON text of the message up to the quote that ends it; whether it
    would leave is not scored. Neither is scored on a last message of a log that does not say why it ended. Dialogues
    beyond the model's context are left out and counted.

    Returns:
        ``per_token``, ``by_turn`` and ``bits_per_byte`` as in ``calibration_nll``, ``scored`` (what the tokens are),
        ``tokenizer`` (the model's signature) and ``left_out``.
    """
    from duologue.simulators.calibrated import CalibratedUser
    from duologue.simulators.prompted import PromptedUser

    user = simulator.user if isinstance(simulator, GuardedUser) else simulator
    if isinstance(user, CalibratedUser):
        return _calibrated(user, dialogues) if user.is_local else None
    if isinstance(user, PromptedUser) and hasattr(user.model, "engine"):
        return _prompted(user, dialogues)
    return None


def _calibrated(user: CalibratedUser, dialogues: Sequence[LoggedDialogue]) -> dict[str, Any]:
    from duologue.trainers.calibration_nll import estimates, model_nll
    from duologue.trainers.calibration_rows import prepare

    prepared = prepare(dialogues, user.chat, user.note.prompt, user.engine.context_length, drop_long=True)
    found = estimates(model_nll(user.loaded.model, prepared.rows), prepared)
    return {
        "per_token": found["all"],
        "by_turn": found["by_turn"],
        "bits_per_byte": found["bits_per_byte"],
        "scored": "decision and words with the end of turn; bits per byte: the words with the end of turn",
        "tokenizer": user.loaded.signature,
        "left_out": len(prepared.dropped),
    }


def _prompted(user: PromptedUser, dialogues: Sequence[LoggedDialogue]) -> dict[str, Any]:
    from duologue.trainers.calibration_nll import growing_nll, ratio

    chat: Any = user.model
    sums: list[list[float]] = []
    counts: list[list[int]] = []
    lengths: list[int] = []
    for dialogue in dialogues:
        rows = [_prompt_row(user, chat.format, dialogue, i) for i in _spoken(dialogue)]
        if any(len(row.ids) > chat.engine.context_length for row in rows):
            continue
        nll = growing_nll(chat.engine.model, rows)
        sums.append([float(nats.sum()) for nats in nll])
        counts.append([len(nats) for nats in nll])
        lengths.append(sum(len(dialogue.messages[i]["content"].strip().encode()) for i in _spoken(dialogue)))
    longest = max(map(len, sums), default=0)
    by_turn = [
        ratio([s[i] if i < len(s) else 0.0 for s in sums], [c[i] if i < len(c) else 0 for c in counts])
        for i in range(longest)
    ]
    return {
        "per_token": ratio([sum(s) for s in sums], [sum(c) for c in counts]),
        "by_turn": by_turn,
        "bits_per_byte": ratio([sum(s) / math.log(2) for s in sums], lengths),
        "scored": "the JSON text of the message with its closing quote, after an empty thought",
        "tokenizer": chat.signature,
        "left_out": len(dialogues) - len(sums),
    }


def _spoken(dialogue: LoggedDialogue) -> list[int]:
    """Return where the turns stand that a calibrated user is scored on, too (see ``human_turns``)."""
    from duologue.simulators.calibrated_layout import human_turns

    return [2 * i for i, human in enumerate(human_turns(dialogue)[0]) if human.text]


def _prompt_row(user: PromptedUser, chat: Any, dialogue: LoggedDialogue, i: int) -> UserRow:
    from duologue.simulators.calibrated_layout import TEXT, UserRow

    prompt = user.prompt(Dialogue(dialogue.task, 0, dialogue.messages[:i]))
    said = json.dumps(dialogue.messages[i]["content"].strip(), ensure_ascii=False)[1:]
    row = UserRow()
    row.give(chat.opening_ids([{"role": "user", "content": prompt}]))
    row.give(chat.text_ids(_BEFORE))
    row.learn(chat.text_ids(said), TEXT, i // 2)
    return row
