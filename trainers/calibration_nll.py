"""How well a model foretells what people wrote: negative log-likelihood of held-out user turns, with intervals.

Nats per token, split into decisions and words, by turn, and in bits per byte (which models with other tokenizers can be
compared in). Intervals: percentile bootstrap (Efron 1979) that resamples dialogues, as turns of one dialogue are not
independent. All numbers hold for the histories of the log, not for those that a trained policy makes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from duologue.simulators.calibrated_layout import DECISION, DECISIONS, GIVEN, TEXT, UserRow
from duologue.trainers import stats
from duologue.trainers.calibration_rows import Prepared

Nll = list[NDArray[np.float64]]
"""One array per dialogue: nats of each learned token, in order."""
Estimate = dict[str, float | int | None]
"""``value``, ``low`` and ``high`` (95 % interval; None with fewer than two dialogues), ``n`` (what it is a mean of)."""


@torch.no_grad()
def model_nll(model: Any, rows: Sequence[UserRow]) -> Nll:
    """Return a model's NLL of the learned tokens; only their logits are computed."""
    was_training = model.training
    model.train(False)
    try:
        return [_row_nll(model, row) for row in rows]
    finally:
        model.train(was_training)


def _row_nll(model: Any, row: UserRow, cache: Any = None, known: int = 0) -> NDArray[np.float64]:
    """Return the NLL of a row's learned tokens, all beyond its ``known`` first tokens, which the cache holds."""
    ids = torch.tensor([row.ids], device=model.device)
    where = torch.tensor([i for i, bit in enumerate(row.mask) if bit], device=model.device)
    new, kept = ids[:, known:], where - 1 - known
    logits = model(input_ids=new, logits_to_keep=kept, cache=cache, use_cache=cache is not None).logits[0]
    logp = torch.log_softmax(logits.float(), dim=-1).gather(1, ids[0, where].unsqueeze(1))
    return np.asarray((-logp.squeeze(1)).double().cpu())


@torch.no_grad()
def growing_nll(model: Any, rows: Sequence[UserRow]) -> Nll:
    """Return ``model_nll`` of the turns of one dialogue, each after its history, at the cost of about one reading.

    What a row shares with the beginning of the one before is not computed again, unless the model's layers forget
    (a sliding window).

    Args:
        model: a causal language model.
        rows: in order of turns; any rows will do, but only long shared beginnings save anything.
    """
    from transformers.cache_utils import DynamicCache

    from duologue.engines.prefix_cache import PrefixCache

    cache = DynamicCache(config=model.config.get_text_config())
    if not PrefixCache.supports(cache):
        return model_nll(model, rows)
    found, held = [], list[int]()
    was_training = model.training
    model.train(False)
    try:
        for row in rows:
            known = min(_shared(held, row.ids), row.mask.index(1) - 1 if 1 in row.mask else 0)
            cache.crop(known - len(held)) if known < len(held) else None
            found.append(_row_nll(model, row, cache, known))
            held = row.ids
    finally:
        model.train(was_training)
    return found


def _shared(before: Sequence[int], now: Sequence[int]) -> int:
    return next((i for i, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now)))


def unigram_nll(training: Sequence[UserRow], rows: Sequence[UserRow], vocabulary: int) -> Nll:
    """Return the NLL under the training tokens' own frequencies, with one added to each of the vocabulary's tokens."""
    counts = np.ones(vocabulary)
    for row in training:
        np.add.at(counts, _learned(row), 1)
    nats = np.log(counts.sum()) - np.log(counts)
    return [nats[_learned(row)] for row in rows]


def constant_rate(training: Prepared, held_out: Prepared) -> Estimate:
    """Return the NLL per decision of a user who decides at the training data's rates (one added to each)."""
    seen = Counter(turn.decision for turns in training.humans for turn in turns[1:])
    total = sum(seen.values()) + len(DECISIONS)
    nats = {word: math.log(total / (seen[word] + 1)) for word in DECISIONS}
    sums = [sum(nats[turn.decision] for turn in turns[1:]) for turns in held_out.humans]
    return ratio(sums, [len(turns) - 1 for turns in held_out.humans])


def estimates(nll: Nll, held_out: Prepared) -> dict[str, Any]:
    """Return NLL per token (all, decision, text, by user turn), per decision, and bits per byte of text."""
    rows = held_out.rows
    decisions = _sums(nll, rows, DECISION)
    last = max((max(row.turns) for row in rows), default=-1)
    bits = [nats / math.log(2) for nats in _sums(nll, rows, TEXT)]
    return {
        "all": ratio([x.sum() for x in nll], [len(x) for x in nll]),
        "decision": ratio(decisions, _counts(rows, DECISION)),
        "text": ratio(_sums(nll, rows, TEXT), _counts(rows, TEXT)),
        "by_turn": [_of_turn(nll, rows, turn) for turn in range(last + 1)],
        "per_decision": ratio(decisions, [len(turns) - 1 for turns in held_out.humans]),
        "bits_per_byte": ratio(bits, held_out.text_bytes),
    }


def change(before: Nll, after: Nll) -> Estimate:
    """Return the change of NLL per token, paired by dialogue; below 0 is better."""
    return ratio([(b - a).sum() for a, b in zip(before, after, strict=True)], [len(x) for x in before])


def ratio(sums: Sequence[float], counts: Sequence[int], seed: int = 0) -> Estimate:
    """Return sum over count with its bootstrap interval over dialogues.

    Args:
        sums: one per dialogue.
        counts: what each sum is over; dialogues with 0 do not count.
        seed: of the resampling, which has a generator of its own.
    """
    pairs = [(s, c) for s, c in zip(sums, counts, strict=True) if c]
    found = stats.ratio([s for s, _ in pairs], [c for _, c in pairs], seed)
    return {**found.to_json(), "n": sum(c for _, c in pairs)}


def _learned(row: UserRow) -> NDArray[np.intp]:
    return _of(row.ids, row)


def _sums(nll: Nll, rows: Sequence[UserRow], kind: int) -> list[float]:
    return [float(x[_of(row.kinds, row) == kind].sum()) for x, row in zip(nll, rows, strict=True)]


def _counts(rows: Sequence[UserRow], kind: int) -> list[int]:
    return [row.kinds.count(kind) for row in rows]


def _of_turn(nll: Nll, rows: Sequence[UserRow], turn: int) -> Estimate:
    sums = [float(x[_of(row.turns, row) == turn].sum()) for x, row in zip(nll, rows, strict=True)]
    return ratio(sums, [row.turns.count(turn) for row in rows])


def _of(values: Sequence[int], row: UserRow) -> NDArray[np.intp]:
    """Return the values at learned tokens."""
    return np.array([value for value, kind in zip(values, row.kinds, strict=True) if kind != GIVEN], dtype=np.intp)
