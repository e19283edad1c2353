"""Configuration of offline DPO on what the dialogues after a reply earn."""

from __future__ import annotations

from dataclasses import dataclass

from duologue.errors import DuologueError
from duologue.trainers.config import check_numbers, with_help

_LEAST = {"replies": 2, "continuations": 1, "max_contexts": 1, "num_envs": 1}


@dataclass(frozen=True, slots=True)
class DpoConfig:
    """Offline DPO: the better of two replies to a logged history is the one whose dialogues then earn more."""

    env: str = with_help("Environment id, for instance MathChat-v0.", "MathChat-v0")
    simulator: str = with_help(
        "The user who goes on from the logged histories: scripted, scripted:MIX, prompted:MODEL, calibrated:FOLDER, …",
        "scripted",
    )
    dialogues: str | None = with_help("Logged dialogues whose histories are replied to (JSONL).", None)
    turns: str = with_help("Assistant turns that are written anew: all, or final (the last of each dialogue).", "all")
    held_out: str | None = with_help(
        "Test dialogues (JSONL) with which training must share no id, words or task; checked before it begins.", None
    )
    max_contexts: int | None = with_help("Most histories, drawn with the seed; the default is all.", None)
    replies: int = with_help("Replies that the policy samples to each history.", 4)
    continuations: int = with_help("Times that each reply is played on to the end of the dialogue.", 3)
    max_turns: int | None = with_help(
        "Most assistant turns per dialogue, those of the log included; the default is the environment's.", None
    )
    model: str = with_help(
        "The policy: 'default', a folder (with or without adapter), or a Hugging Face id.", "default"
    )
    system_prompt: str | None = with_help("System message of the policy; none by default.", None)
    output: str = with_help("Folder for replies, pairs, logs and the trained policy.", "runs/dpo")
    temperature: float = with_help("Sampling temperature of replies and continuations.", 1.0)
    max_tokens_per_turn: int = with_help("Most tokens the policy may sample in a turn.", 256)
    max_total_tokens: int = with_help("Most tokens of a dialogue, of both speakers and the prompt.", 2048)
    num_envs: int = with_help("Dialogues side by side.", 64)
    beta: float = with_help("DPO's beta, above 0: how much a pair may move the policy from where it was.", 0.1)
    learning_rate: float = with_help("Learning rate of AdamW, decaying linearly to 0.", 1e-5)
    epochs: float = with_help("Passes over the pairs.", 1.0)
    batch_size: int = with_help("Pairs per optimiser step.", 8)
    lora_rank: int = with_help("Rank of LoRA adapters on all linear layers; 0 trains every weight.", 16)
    lora_top_layers: int | None = with_help("Put adapters on the last so many layers only.", None)
    dtype: str = with_help("Weights: float32, bfloat16 or auto.", "auto")
    seed: int = with_help("Seeds histories, users, sampling, order and initialisation.", 0)

    def __post_init__(self) -> None:
        """Check what can be checked without loading anything.

        Raises:
            DuologueError: for a value that cannot work; the message names the field and the fix.
        """
        check_numbers(self)
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int) and value >= least):
                raise DuologueError(f"{name} is {value!r}. Set it to a whole number from {least}.")
        if self.beta == 0:
            raise DuologueError("beta is 0, at which DPO learns nothing. Set it to a number above 0.")
        if not self.dialogues:
            raise DuologueError("There are no dialogues to take histories from. Set dialogues to a JSONL file of logs.")
        if self.max_tokens_per_turn > self.max_total_tokens:
            raise DuologueError(
                f"max_tokens_per_turn {self.max_tokens_per_turn} is over max_total_tokens {self.max_total_tokens}, so "
                "that no dialogue would have room for a turn. Lower the one or raise the other."
            )
