"""A language model in this process, text in and text out."""

from __future__ import annotations

from collections.abc import Sequence

from duologue.engines.base import Sampling
from duologue.engines.chat import ChatFormat
from duologue.engines.hf import TransformersEngine
from duologue.engines.models import LoadedModel
from duologue.types import Message


class LocalChat:
    """A ``ChatModel`` over ``TransformersEngine`` and the model's own chat template."""

    def __init__(self, loaded: LoadedModel) -> None:
        """Wrap a loaded model.

        Raises:
            DuologueError: if its chat template cannot be used.
        """
        pad = loaded.tokenizer.pad_token_id
        self.format = ChatFormat(loaded.tokenizer)
        self.engine = TransformersEngine(loaded.model, pad if isinstance(pad, int) else self.format.end_of_turn_id)
        self.signature = loaded.signature

    def chat(self, conversations: Sequence[Sequence[Message]], sampling: Sampling, seeds: Sequence[int]) -> list[str]:
        """Return the assistant's next message for each conversation, in order.

        Raises:
            DuologueError: if a conversation leaves no room in the context window.
        """
        prompts = [self.format.opening_ids(conversation) for conversation in conversations]
        completions = self.engine.generate(prompts, sampling, self.format.stop_ids, seeds)
        return [self.format.decode(completion.token_ids) for completion in completions]
