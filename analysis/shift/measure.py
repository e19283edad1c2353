"""From dialogues that are there to shifts, turn by turn. Nothing is played here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from duologue.analysis.shift.classifier import classifier_bound, require_classifier
from duologue.analysis.shift.deviation import Answers, Texts, policy_deviation, user_deviation
from duologue.analysis.shift.likelihood import Reference, Scores, likelihood_difference, score_all
from duologue.analysis.shift.report import PairShift, ShiftReport
from duologue.analysis.shift.returns import Bounds, bounds
from duologue.analysis.shift.sampling import OnStep, missing
from duologue.analysis.shift.states import answered, context_tokens, labels, reached, seen_of
from duologue.analysis.shift.variation import VariationCurve, variation_curve
from duologue.analysis.summary import FindTask
from duologue.analysis.user_rates import Seen
from duologue.errors import DuologueError
from duologue.simulators.logs import LoggedDialogue
from duologue.simulators.spec import env_name
from duologue.trainers.stats import Estimate, difference
from duologue.types import Episode

Dialogues = Sequence[Episode | LoggedDialogue]
SETS = ("logs", "human", "simulated")
PAIRS = {"policy": ("logs", "human"), "simulator": ("simulated", "human"), "both": ("logs", "simulated")}
"""Which sets each shift compares."""


def measure_shift(
    logs: Dialogues,
    human: Dialogues,
    simulated: Dialogues,
    find_task: FindTask,
    *,
    turns: int | None = None,
    replies: Texts | None = None,
    answers: Answers | None = None,
    reference: Reference | None = None,
    signatures: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    seed: int = 0,
    on_step: OnStep | None = None,
) -> ShiftReport:
    """Measure how far contexts are apart: logged ones, and those that a policy meets with two users.

    Dialogues of two sets with the same task and seed are paired, and those without a partner then left out, if at least
    half of them have one; else dialogues count as independent.

    Args:
        logs: of people, or of another policy; empty = no ``policy`` and no ``both``.
        human: the policy's own, with the user it will meet.
        simulated: the policy's own, with the simulator; empty = no ``simulator`` and no ``both``.
        find_task: the task of an episode's id. Logged dialogues bring theirs.
        turns: H: measure the turns 0..H-1; None = the most that any dialogue has.
        replies: what the policy says on the logs' contexts, by log and turn (see ``sampling.replies_on``).
        answers: what the simulator says on the histories with the human (see ``sampling.answers_on``).
        reference: compares likelihoods too.
        signatures: of each set (``SETS``), for the report.
        notes: for the report.
        seed: of folds, permutations and resamples.
        on_step: follows the work.

    Raises:
        DuologueError: if there are no dialogues with the human, they come from several environments or one that
            shipped users do not know, or a task is unknown.
        MissingExtraError: if scikit-learn is not installed.
    """
    require_classifier()
    work = _Work.of((logs, human, simulated), find_task, turns, reference, signatures or {}, seed)
    epsilon = policy_deviation(work.all_logs, replies, work.turns, seed) if replies is not None else None
    delta = user_deviation(work.all_human, answers, work.turns, seed) if answers is not None else None
    left_out = dict(work.left_out)
    if replies is not None:
        left_out["replies"] = missing(work.all_logs, replies, reached)
    if answers is not None:
        left_out["answers"] = missing(work.all_human, answers, answered)
    return ShiftReport(
        env=work.env,
        turns=work.turns,
        pairs=work.pairs({"policy": [epsilon], "simulator": [delta], "both": [epsilon, delta]}, on_step),
        policy_deviation=epsilon,
        user_deviation=delta,
        left_out=left_out,
        notes=tuple(notes),
        signature=work.signature(),
    )


@dataclass(frozen=True, slots=True)
class _Work:
    """The sets of one measurement, without dialogues that ended with an error."""

    env: str
    turns: int
    sets: Mapping[str, list[Seen]]
    all_logs: list[Seen]
    all_human: list[Seen]
    left_out: Mapping[str, int]
    reference: Reference | None
    signatures: Mapping[str, str]
    seed: int

    @classmethod
    def of(
        cls,
        given: tuple[Dialogues, Dialogues, Dialogues],
        find_task: FindTask,
        turns: int | None,
        reference: Reference | None,
        signatures: Mapping[str, str],
        seed: int,
    ) -> _Work:
        env = _env_of(given)
        everything = {n: [seen_of(d, env, find_task) for d in side] for n, side in zip(SETS, given, strict=True)}
        sets = {name: [s for s in side if not s.episode.stop_reason.is_error] for name, side in everything.items()}
        if not sets["human"]:
            raise DuologueError("There are no finished dialogues of the policy with the human. Play some first.")
        most = max(len(s.messages) // 2 for side in sets.values() for s in side)
        return cls(
            env=env,
            turns=max(1, min(most, turns or most)),
            sets=sets,
            all_logs=everything["logs"],
            all_human=everything["human"],
            left_out={name: len(everything[name]) - len(sets[name]) for name in SETS},
            reference=reference,
            signatures=signatures,
            seed=seed,
        )

    def pairs(
        self, deviations: Mapping[str, Sequence[VariationCurve | None]], on_step: OnStep | None
    ) -> dict[str, PairShift]:
        """Return the shifts whose sets are not empty."""
        wanted = {name: ends for name, ends in PAIRS.items() if all(self.sets[end] for end in ends)}
        read = sum(map(len, self.sets.values())) if self.reference else 0
        steps = _Steps(len(wanted) * self.turns + read, on_step)
        scores = {n: score_all(self.reference, s, steps.step) for n, s in self.sets.items()} if self.reference else None
        return {name: self._pair(ends, deviations[name], scores, steps) for name, ends in wanted.items()}

    def _pair(
        self,
        ends: tuple[str, str],
        deviations: Sequence[VariationCurve | None],
        scores: Mapping[str, Scores] | None,
        steps: _Steps,
    ) -> PairShift:
        a, b, paired = _aligned(*(self.sets[end] for end in ends))
        gap = difference(_scores(a), _scores(b))
        known = [curve for curve in deviations if curve is not None]
        rows = labels(a, self.turns), labels(b, self.turns)
        states = variation_curve(*rows, paired=paired, seed=self.seed)
        return PairShift(
            n=(len(a), len(b)),
            paired=paired,
            reached=tuple((_share(a, turn), _share(b, turn)) for turn in range(self.turns)),
            states=states,
            classifier=tuple(steps.each(lambda turn: self._told_apart((a, b), rows, paired, turn), self.turns)),
            likelihood=self._likelihood(a, b, (scores[ends[0]], scores[ends[1]])) if scores else None,
            gap=gap,
            bounds=_bounds(known, states, gap) if len(known) == len(deviations) else None,
            signature=f"{' / '.join(self.signatures.get(end, end) for end in ends)}|shift-seed:{self.seed}",
        )

    def signature(self) -> str:
        """Return what was measured: each set that has dialogues, and the model of the likelihoods."""
        parts = [f"{name}: {self.signatures.get(name, 'unknown')}" for name in SETS if self.sets[name]]
        return "; ".join([*parts, *([f"reference: {self.reference.signature}"] if self.reference else [])])

    def _told_apart(
        self, sides: Sequence[Sequence[Seen]], rows: Sequence[Sequence[Sequence[str]]], paired: bool, turn: int
    ) -> Estimate:
        ours, theirs = (
            [context_tokens(seen, turn, row[turn]) for seen, row in zip(*side, strict=True)]
            for side in zip(sides, rows, strict=True)
        )
        return classifier_bound(ours, theirs, paired=paired, seed=self.seed)

    def _likelihood(self, a: Sequence[Seen], b: Sequence[Seen], scores: tuple[Scores, Scores]) -> tuple[Estimate, ...]:
        return tuple(likelihood_difference(a, b, scores, turn) for turn in range(self.turns))


@dataclass(slots=True)
class _Steps:
    """Counts steps for a follower."""

    total: int
    on_step: OnStep | None
    done: int = 0

    def step(self) -> None:
        self.done += 1
        if self.on_step:
            self.on_step(self.done, self.total)

    def each(self, do: Callable[[int], Estimate], turns: int) -> Iterator[Estimate]:
        for turn in range(turns):
            yield do(turn)
            self.step()


def _bounds(deviations: Sequence[VariationCurve], states: VariationCurve, gap: Estimate) -> Bounds | None:
    """Return the bounds, or None where a side has no scores."""
    return bounds(deviations, states.turns[0].estimate, gap) if gap.value == gap.value else None


def _env_of(given: Sequence[Dialogues]) -> str:
    """Return the environment of the episodes; logged dialogues name none."""
    ids = {d.env_id for side in given for d in side if isinstance(d, Episode)}
    if len({env_name(env) for env in ids}) != 1:
        raise DuologueError(f"The episodes come from {len(ids)} environments. Measure those of one at a time.")
    return min(ids)


def _aligned(a: Sequence[Seen], b: Sequence[Seen]) -> tuple[Sequence[Seen], Sequence[Seen], bool]:
    """Return both sides in pairs of one task and seed, if at least half of the smaller side has a partner."""
    ours, theirs = ({(s.episode.task_id, s.episode.seed): s for s in side} for side in (a, b))
    shared = [start for start in ours if start in theirs]
    if 2 * len(shared) < min(len(a), len(b)):
        return a, b, False
    return [ours[start] for start in shared], [theirs[start] for start in shared], True


def _scores(dialogues: Sequence[Seen]) -> dict[int, float]:
    """Return the score of each dialogue that has one, by seed."""
    return {s.episode.seed: s.episode.reward for s in dialogues if s.episode.reward is not None}


def _share(dialogues: Sequence[Seen], turn: int) -> float:
    return sum(reached(seen, turn) for seen in dialogues) / len(dialogues)
