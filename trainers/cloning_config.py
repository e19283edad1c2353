"""Configuration of behaviour cloning."""

from __future__ import annotations

from dataclasses import dataclass

from duologue.trainers.config import check_numbers, with_help


@dataclass(frozen=True, slots=True)
class CloningConfig:
    """Behaviour cloning of the assistant."""

    dialogues: str | None = with_help("Logged dialogues whose assistant is cloned (JSONL).", None)
    model: str = with_help("The model to start from.", "default")
    system_prompt: str | None = with_help("System message of the policy; none by default.", None)
    output: str = with_help("Folder for the trained model.", "runs/cloning")
    epochs: float = with_help("Passes over the dialogues.", 1.0)
    batch_size: int = with_help("Dialogues per optimiser step.", 8)
    learning_rate: float = with_help("Learning rate of AdamW, decaying linearly to 0.", 2e-4)
    max_total_tokens: int = with_help("Longest dialogue in tokens. A longer one is an error: nothing is cut.", 2048)
    lora_rank: int = with_help("Rank of LoRA adapters on all linear layers; 0 trains every weight.", 16)
    lora_top_layers: int | None = with_help("Put adapters on the last so many layers only.", None)
    dtype: str = with_help("Weights: float32, bfloat16 or auto.", "auto")
    seed: int = with_help("Seeds order and initialisation.", 0)

    def __post_init__(self) -> None:
        """Check what can be checked without loading anything.

        Raises:
            DuologueError: for a value that cannot work; the message names the field and the fix.
        """
        check_numbers(self)
