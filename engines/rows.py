"""What engines share: checking a call, and telling of rows that failed without losing the others."""

from __future__ import annotations

from collections.abc import Sequence

from duologue.engines.base import Completion, Sampling
from duologue.errors import DuologueError


class RowsError(DuologueError):
    """Some prompts of a call got no completion; the others' are here all the same.

    Attributes:
        rows: one per prompt, in order: its completion, or why it has none.
    """

    def __init__(self, rows: Sequence[Completion | DuologueError]) -> None:
        self.rows = list(rows)
        failed = [row for row in self.rows if isinstance(row, DuologueError)]
        super().__init__(f"{len(failed)} of {len(self.rows)} prompts got no completion. {failed[0]}")


class RepliesError(DuologueError):
    """Some conversations of a call got no reply; the others' are here all the same.

    Attributes:
        rows: one per conversation, in order: its reply, or why it has none.
    """

    def __init__(self, rows: Sequence[str | DuologueError]) -> None:
        self.rows = list(rows)
        failed = [row for row in self.rows if isinstance(row, DuologueError)]
        count = f"{len(failed)} of {len(self.rows)} conversations got no reply. " if len(self.rows) > 1 else ""
        super().__init__(f"{count}{failed[0]}")


def check_call(prompts: Sequence[Sequence[int]], sampling: Sampling, seeds: Sequence[int], context_length: int) -> None:
    """Check the arguments of ``Engine.generate``.

    Raises:
        DuologueError: if a prompt is empty or leaves no room in the context window, or seeds are missing.
    """
    if len(seeds) != len(prompts):
        raise DuologueError(f"{len(prompts)} prompts came with {len(seeds)} seeds. Give one seed per prompt.")
    if sampling.max_new_tokens < 1 or sampling.temperature < 0:
        raise DuologueError("Sampling needs max_new_tokens >= 1 and temperature >= 0. Correct these.")
    for i, prompt in enumerate(prompts):
        if not prompt:
            raise DuologueError(f"Prompt {i} has no tokens. Give at least one.")
        if len(prompt) + sampling.max_new_tokens > context_length:
            raise DuologueError(
                f"Prompt {i} of {len(prompt)} tokens leaves no room for {sampling.max_new_tokens} more in a "
                f"context of {context_length}. Shorten the dialogue or lower max_new_tokens."
            )
