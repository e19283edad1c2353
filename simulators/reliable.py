"""Ask a simulator that may raise, hang or return junk, and always come back with one result per dialogue."""

from collections.abc import Sequence

from duologue.deadline import call_within
from duologue.errors import DuologueError
from duologue.simulators.base import Simulator
from duologue.types import Dialogue, StopReason, UserTurn

USER_STOPS = (None, StopReason.USER_SATISFIED, StopReason.USER_GAVE_UP)
"""What a user turn's ``stop`` may be: the user cannot end a dialogue for the environment's reasons."""
_MAX_HANGS = 3


def answer_all(
    simulator: Simulator, dialogues: Sequence[Dialogue], timeout: float | None
) -> list[UserTurn | Exception]:
    """Return one user turn per dialogue, in order, or the error that kept it from coming.

    ``respond`` is called once for the whole batch. If a model tells which rows it failed at (``RowsError``,
    ``RepliesError``), the others are asked for again as one batch. Dialogues without a valid turn are then tried once
    more, singly, so that one bad row cannot spoil its batch. After three single calls that hang, the rest are not
    tried: this bounds the wait at five time-outs. A hanging call is left behind in a daemon thread, which does not hold
    up the exit.

    Args:
        simulator: the user.
        dialogues: waiting for a user turn.
        timeout: seconds that each call may take; None waits for ever and calls in this thread (people at a terminal).
    """
    if not dialogues:
        return []
    answer = _call(simulator, dialogues, timeout)
    results = _checked(answer, len(dialogues))
    blameless = _blameless(answer, len(dialogues))
    if blameless:
        again = _checked(_call(simulator, [dialogues[i] for i in blameless], timeout), len(blameless))
        for i, result in zip(blameless, again, strict=True):
            results[i] = result
    hangs = 0
    for i, result in enumerate(results):
        if isinstance(result, UserTurn):
            continue
        if hangs < _MAX_HANGS:
            result = _checked(_call(simulator, dialogues[i : i + 1], timeout), 1)[0]
            hangs += isinstance(result, TimeoutError)
        results[i] = result if isinstance(result, UserTurn) else _explain(simulator, dialogues[i], result)
    return results


def invalid(turn: object) -> str | None:
    """Return what is wrong with a user turn and how to mend it, or None if it keeps the contract."""
    if not isinstance(turn, UserTurn):
        return f"it returned {type(turn).__name__} for a user turn. Return a list of duologue.UserTurn."
    text: object = turn.text
    if not isinstance(text, str):
        return f"its text is {type(text).__name__}. Make UserTurn.text a str."
    if turn.stop is not None and turn.stop not in USER_STOPS:
        return f"its stop is {turn.stop!r}. Use StopReason.USER_SATISFIED or StopReason.USER_GAVE_UP, or None."
    if turn.stop is None and not text.strip():
        return "its text is empty but the user goes on. Say something, or set UserTurn.stop to leave."
    return None


def _blameless(answer: object, count: int) -> list[int]:
    """Return the rows that a model did not fail at in a call that it failed, or none if it does not tell."""
    rows = getattr(answer, "rows", None) if isinstance(answer, DuologueError) else None
    if not isinstance(rows, list) or len(rows) != count:
        return []
    return [i for i, row in enumerate(rows) if not isinstance(row, Exception)]


def _checked(answer: object, count: int) -> list[UserTurn | Exception]:
    """Turn whatever came back into one result per dialogue."""
    if isinstance(answer, Exception):
        return [answer] * count
    if not isinstance(answer, list | tuple):
        kind = type(answer).__name__
        return [DuologueError(f"respond() returned {kind}. Return a list of UserTurn, one per dialogue.")] * count
    if len(answer) != count:
        why = f"respond() returned {len(answer)} turns for {count} dialogues. Return one per dialogue, in order."
        return [DuologueError(why)] * count
    return [_turn_or_error(turn) for turn in answer]


def _turn_or_error(turn: object) -> UserTurn | Exception:
    why = invalid(turn)
    return turn if isinstance(turn, UserTurn) and why is None else DuologueError(why)


def _call(simulator: Simulator, dialogues: Sequence[Dialogue], timeout: float | None) -> object:
    """Return what respond() returns, or the exception that it raises, or a TimeoutError."""
    try:
        return call_within(lambda: simulator.respond(dialogues), timeout)
    except Exception as error:  # whatever a third party's user raises becomes data
        return error


def _explain(simulator: Simulator, dialogue: Dialogue, error: Exception) -> DuologueError:
    name = getattr(simulator, "signature", None) or type(simulator).__qualname__
    why = str(error) if isinstance(error, DuologueError | TimeoutError) else f"{type(error).__name__}: {error}."
    explained = DuologueError(
        f"The user simulator {name!r} failed twice on task {dialogue.task.task_id!r}: {why} "
        "To find the cause, run duologue.simulators.check_simulator(simulator, tasks)."
    )
    explained.__cause__ = error
    return explained
