"""Calibration of the user: behaviour cloning of what people wrote (Stage 1 of arXiv:2605.26403).

The user is a model that reads the oracle context and the dialogue so far, and learns the person's next turn: when to
leave, and what to type. Prompts, layout and rates are choices of ours; the paper's are not known. Rows come from the
same function as the prompts of ``CalibratedUser`` (``simulators.calibrated_layout``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from duologue.disk import explains_full_disk
from duologue.engines.chat import ChatFormat
from duologue.engines.models import LoadedModel, load_model
from duologue.errors import DuologueError
from duologue.simulators.calibrated_folder import FILE, CalibrationNote
from duologue.simulators.calibrated_layout import calibrated_prompt
from duologue.simulators.logs import LoggedDialogue
from duologue.simulators.spec import env_name
from duologue.trainers.calibration_card import write_card
from duologue.trainers.calibration_config import CalibrateConfig
from duologue.trainers.calibration_nll import Nll, change, constant_rate, estimates, model_nll, unigram_nll
from duologue.trainers.calibration_rows import Division, Prepared, data_hash, divide, prepare, read_parts
from duologue.trainers.processes import refuse_processes
from duologue.trainers.supervised import fit

_LONGEST_TURN = 512
"""Most tokens of a sampled user turn, even if somebody in the logs pasted more."""


@explains_full_disk("run the same command: it calibrates anew, over what is half written.")
def calibrate(
    config: CalibrateConfig,
    dialogues: Sequence[LoggedDialogue] | None = None,
    held_out: Sequence[LoggedDialogue] | None = None,
    loaded: LoadedModel | None = None,
    on_phase: Callable[[str], None] | None = None,
) -> Path:
    """Fit a user to logged dialogues and measure it on held-out ones.

    Args:
        config: everything that is not an object.
        dialogues: to learn from; the default reads ``config.dialogues``.
        held_out: to measure on, with ``dialogues``; the default reads ``config.held_out`` or holds a fifth out.
        loaded: a model in memory, which is trained; the default loads ``config.model``.
        on_phase: called with a sentence when something begins that takes time.

    Returns:
        The output folder, for ``CalibratedUser`` and ``simulator="calibrated:FOLDER"``: adapter or weights, tokenizer,
        ``calibration.json``, ``metrics.json`` and a model card in ``README.md``.

    Raises:
        DuologueError: if dialogues are missing, malformed, too long or in both parts, or the folder holds a calibrated
            user already, or several processes were launched.
    """
    refuse_processes("Calibration", "Run it once without accelerate launch; training then takes the folder.")
    folder, say = Path(config.output), on_phase or (lambda sentence: None)
    if (folder / FILE).exists():
        raise DuologueError(f"{folder} holds a calibrated user already. Choose another output.")
    if dialogues is None:
        dialogues, held_out = read_parts(config.dialogues, config.held_out)
    parts = divide(dialogues, held_out, config.seed)
    loaded = loaded or load_model(config.model, dtype=config.dtype)
    base, template = loaded.signature, calibrated_prompt(env_name(config.env))
    learned, asked = _prepared(config, parts, loaded, template)
    say(f"Measuring {base} on {len(asked.rows)} held-out dialogues, split {_said(parts)}.")
    before = model_nll(loaded.model, asked.rows)
    say(f"Training on {len(learned.rows)} dialogues.")
    model = fit(config, learned.training_rows, loaded)
    say("Measuring again.")
    metrics = _metrics(parts, learned, asked, before, model_nll(model, asked.rows), len(loaded.tokenizer))
    note = CalibrationNote(
        env=env_name(config.env),
        prompt=template,
        max_new_tokens=min(learned.longest_turn, _LONGEST_TURN),
        base=base,
        data_hash=data_hash(parts.training),
        settings=asdict(config),
    )
    (folder / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    write_card(folder, note, metrics)
    note.write(folder)
    return folder


def _prepared(
    config: CalibrateConfig, parts: Division, loaded: LoadedModel, template: str
) -> tuple[Prepared, Prepared]:
    chat = ChatFormat(loaded.tokenizer)
    context = getattr(loaded.model.config.get_text_config(), "max_position_embeddings", None) or 2**31
    limit = min(config.max_total_tokens, int(context))
    training = prepare(parts.training, chat, template, limit, drop_long=config.drop_long)
    return training, prepare(parts.held_out, chat, template, limit, drop_long=config.drop_long)


def _said(parts: Division) -> str:
    return "as given" if parts.by == "given" else f"by {parts.by}"


def _metrics(
    parts: Division, learned: Prepared, asked: Prepared, before: Nll, after: Nll, vocabulary: int
) -> dict[str, Any]:
    shared = {d.person for d in learned.dialogues} & {d.person for d in asked.dialogues} - {None}
    unigram = estimates(unigram_nll(learned.rows, asked.rows, vocabulary), asked)
    return {
        "split": parts.by,
        "persons_in_both": len(shared),
        "training": learned.counts(),
        "held_out": asked.counts(),
        "before": estimates(before, asked),
        "after": estimates(after, asked),
        "change": change(before, after),
        "unigram": unigram,
        "constant_rate": {"per_decision": constant_rate(learned, asked)},
    }
