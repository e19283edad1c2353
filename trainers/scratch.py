"""A small language model trained from scratch on logs: a start for experiments that must be done in minutes.

It learns both speakers' words, and nothing but these. So it knows the task's language and the logged assistant's
habits, follows no instructions, and cannot be compared with models that were pre-trained on text at large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from duologue.disk import explains_full_disk
from duologue.errors import DuologueError
from duologue.trainers.config import with_help
from duologue.types import Message

if TYPE_CHECKING:
    from duologue.engines.models import LoadedModel
    from duologue.simulators.logs import LoggedDialogue

OnStep = Callable[[int, int, float], None]
"""Called with optimiser steps done, steps in all, and the loss of the last one in nats per token."""

SMALLEST_VOCABULARY = 259
"""All bytes and the three special tokens."""
_CURVE_POINTS = 12
_WHOLE = ("layers", "hidden", "heads", "context", "epochs", "batch_tokens")


@dataclass(frozen=True, slots=True)
class ScratchConfig:
    """A Llama and its tokenizer, trained from scratch on logged dialogues."""

    dialogues: str = with_help("Logged dialogues, one JSON object a line.", "logs.jsonl")
    output: str = with_help("Folder for the model; must not hold one yet.", "runs/scratch")
    layers: int = with_help("Transformer layers.", 3)
    hidden: int = with_help("Width of the model; a multiple of twice the heads.", 128)
    heads: int = with_help("Attention heads.", 4)
    vocabulary: int = with_help("Most tokens of the tokenizer, bytes and special tokens included.", 1024)
    context: int = with_help("Context window in tokens; a longer dialogue is an error.", 512)
    epochs: int = with_help("Passes over the dialogues.", 4)
    batch_tokens: int = with_help(
        "Most tokens per optimiser step, padding included; a longer dialogue is a step of its own.", 512
    )
    learning_rate: float = with_help("Highest learning rate of AdamW: short warm-up, then cosine to 0.", 3e-3)
    env: str | None = with_help(
        "Environment whose calibrated users the tokenizer is fitted to as well, so that their prompts stay short.", None
    )
    seed: int = with_help("Seeds weights and order.", 0)

    def __post_init__(self) -> None:
        """Check what can be checked without loading anything.

        Raises:
            DuologueError: for a value that cannot work; the message names the field and the fix.
        """
        for name, least in {**dict.fromkeys(_WHOLE, 1), "seed": 0, "vocabulary": SMALLEST_VOCABULARY}.items():
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise DuologueError(f"{name} is {value!r}. Set it to a whole number from {least}.")
        if self.hidden % (2 * self.heads):
            raise DuologueError(f"hidden {self.hidden} is no multiple of twice the {self.heads} heads. Change one.")
        if not 0 < self.learning_rate < 1:
            raise DuologueError(f"learning_rate is {self.learning_rate!r}. Set it to a number between 0 and 1.")


@explains_full_disk("run the same command: it trains anew, over what is half written.")
def pretrain(
    config: ScratchConfig, dialogues: Sequence[Sequence[Message]] | None = None, on_step: OnStep | None = None
) -> Path:
    """Train a tokenizer and a model from scratch, and save both with a model card (``README.md``).

    Every token of both speakers carries loss. The same configuration and dialogues give the same weights, bit for bit,
    on one CPU with the same number of threads and library versions.

    Args:
        config: everything that is not an object.
        dialogues: messages, the user first and then in turn; None = those of ``config.dialogues``.
        on_step: follows the training.

    Returns:
        The output folder, which ``load_model`` takes.

    Raises:
        DuologueError: if there are no dialogues, one is malformed or longer than ``context``, or the folder holds a
            model.
    """
    output = Path(config.output)
    if (output / "config.json").exists():
        raise DuologueError(f"{config.output!r} holds a model already. Give another output, or remove it.")
    prompts: list[str] = []
    if dialogues is None:
        from duologue.simulators.logs import read_logs  # it loads numpy, and the command line shows help without

        logged = read_logs(config.dialogues)
        dialogues, prompts = [dialogue.messages for dialogue in logged], _oracle_contexts(config.env, logged)
    if not dialogues:
        raise DuologueError("There are no dialogues to train on. Play some with duologue rollout, or load logs.")
    from duologue.trainers.scratch_model import new_model, new_tokenizer, token_rows, train

    said = (text for messages in dialogues for m in messages for text in (m["role"], m["content"]))
    tokenizer = new_tokenizer(chain(said, prompts), config.vocabulary)
    rows = token_rows(dialogues, tokenizer, config.context)
    loaded = new_model(config, tokenizer)
    curve = train(loaded.model, rows, config, on_step)
    _save(loaded, output, _card(config, dialogues, sum(map(len, rows)), loaded, curve))
    return output


def _oracle_contexts(env: str | None, logged: Sequence[LoggedDialogue]) -> list[str]:
    """Return what a calibrated user reads before each dialogue; nothing without an environment."""
    if env is None:
        return []
    from duologue.simulators.calibrated_layout import calibrated_prompt, oracle_context
    from duologue.simulators.spec import env_name

    template = calibrated_prompt(env_name(env))
    return [oracle_context(dialogue.task, template) for dialogue in logged]


def _save(loaded: LoadedModel, output: Path, card: str) -> None:
    from duologue.engines.models import without_bars

    output.mkdir(parents=True, exist_ok=True)
    loaded.tokenizer.save_pretrained(str(output))
    (output / "README.md").write_text(card, encoding="utf-8")
    try:
        with without_bars():
            loaded.model.save_pretrained(str(output))
    except BaseException:
        (output / "config.json").unlink(missing_ok=True)  # it is written first, and says that there is a model
        raise


def _card(
    config: ScratchConfig,
    dialogues: Sequence[Sequence[Message]],
    tokens: int,
    loaded: LoadedModel,
    curve: Sequence[float],
) -> str:
    settings = ", ".join(f"{name} {value}" for name, value in asdict(config).items() if name not in _PATHS)
    size = sum(parameter.numel() for parameter in loaded.model.parameters())
    points = sorted({round(i * (len(curve) - 1) / (_CURVE_POINTS - 1)) for i in range(_CURVE_POINTS)})
    return "\n".join(
        [
            "# A small language model trained from scratch on logs",
            "",
            f"A Llama of {size:,} parameters with a byte-level BPE tokenizer of {len(loaded.tokenizer)} tokens. It saw",
            f"nothing but {len(dialogues):,} logged dialogues ({tokens:,} tokens, {config.epochs} times; SHA-256",
            f"of the messages {_hash(dialogues)}). It speaks their language and copies their habits, and no other.",
            "",
            f"Settings: {settings}.",
            "",
            "| step | loss (nats per token) |",
            "|---|---|",
            *(f"| {i + 1} | {curve[i]:.3f} |" for i in points),
            "",
        ]
    )


_PATHS = ("dialogues", "output")


def _hash(dialogues: Sequence[Sequence[Message]]) -> str:
    words = [[(m["role"], m["content"]) for m in messages] for messages in dialogues]
    return sha256(repr(words).encode()).hexdigest()[:16]
