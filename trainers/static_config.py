"""Configuration of static-context training."""

from __future__ import annotations

from dataclasses import dataclass

from duologue.errors import DuologueError
from duologue.trainers.config import InteractiveConfig, with_help


@dataclass(frozen=True, slots=True)
class StaticConfig(InteractiveConfig):
    """Static-context GRPO: one new reply to histories from logged dialogues, scored as the last word on them."""

    max_turns: int | None = with_help(
        "Most new assistant turns after a logged history. 1 is static context; with more, the user goes on from it.", 1
    )
    output: str = with_help("Folder for checkpoints, episodes.jsonl and logs.", "runs/static")
    dialogues: str | None = with_help("Logged dialogues whose histories are replied to (JSONL).", None)
    turns: str = with_help("Assistant turns that are written anew: all, or final (the last of each dialogue).", "all")
    held_out: str | None = with_help(
        "Test dialogues (JSONL) with which training must share no id, words or task; checked before it begins.", None
    )

    def __post_init__(self) -> None:
        """Check what can be checked without loading anything.

        Raises:
            DuologueError: for a value that cannot work; the message names the field and the fix.
        """
        InteractiveConfig.__post_init__(self)  # super() does not work in a dataclass with slots
        if not self.dialogues:
            raise DuologueError("There are no dialogues to take histories from. Set dialogues to a JSONL file of logs.")
        if self.tasks is not None:
            raise DuologueError("Logged dialogues bring their own tasks. Leave out tasks.")
