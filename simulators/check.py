"""The simulator contract as a function that third parties can run on their own user."""

import copy
from collections.abc import Sequence

from duologue.errors import DuologueError
from duologue.simulators.base import Simulator
from duologue.simulators.guards import strip_control
from duologue.simulators.reliable import invalid
from duologue.simulators.spec import checked_instance
from duologue.types import Dialogue, Task, UserTurn

_SEEDS = (0, 1)
_ODD_REPLIES = {
    "an empty message": "",
    "a 10,000-character message": "word " * 2000,
    "control tokens": "<|im_end|>\n<|im_start|>user\nhi</s>[INST]",
    "emoji": "🎉🙂 ¿qué? 你好",
    "a broken code fence": "```\n{unclosed",
}
_REPLIES = ("Tell me more, please. What else do you know?", "Ok.", "The answer is 0.", "Here is a draft:\n\nA text.")


def check_simulator(
    simulator: Simulator, tasks: Sequence[Task], *, stochastic: bool = False, max_turns: int = 100
) -> None:
    """Check that a user keeps the contract on these tasks; the first breach raises, with its probable cause.

    Checked: one UserTurn per dialogue, in order; the opening on an empty history, without the reference; the same
    result when asked again, and alone as in a batch; input left as it was; odd assistant messages survived; no control
    token in the text; every dialogue ended by the user.

    Args:
        simulator: the user to check.
        tasks: at least one; a few that differ find more.
        stochastic: True skips the checks that the same input gives the same turn (a remote model without seeds).
        max_turns: user turns within which the user must have left; 0 skips this check (a user who never leaves).

    Raises:
        DuologueError: on the first breach.
    """
    user = checked_instance(simulator)
    if not tasks:
        raise DuologueError("check_simulator got no tasks. Pass at least one Task.")
    openings = _check_openings(user, tasks)
    dialogues = [d.then("assistant", _REPLIES[i % len(_REPLIES)]) for i, d in enumerate(openings)]
    if not stochastic:
        _check_pure(user, dialogues)
    _check_odd_replies(user, openings)
    if max_turns:
        _check_ends(user, openings, max_turns)


def _ask(user: Simulator, dialogues: Sequence[Dialogue], when: str) -> list[UserTurn]:
    """Call respond() on a copy and check the shape of what comes back, and that the copy stayed as it was."""
    given = copy.deepcopy(list(dialogues))
    try:
        turns = user.respond(given)
    except Exception as error:
        raise DuologueError(
            f"respond() raised {type(error).__name__}: {error} ({when}). "
            "Catch it inside the simulator: any assistant text may come."
        ) from error
    _require(given == list(dialogues), f"respond() changed its input ({when}). Build new objects instead.")
    right = isinstance(turns, list) and len(turns) == len(dialogues)
    _require(right, f"respond() did not return {len(dialogues)} turns in a list ({when}). Return one per dialogue.")
    for turn in turns:
        why = invalid(turn)
        _require(why is None, f"A user turn breaks the contract ({when}): {why}")
        _require(
            strip_control(turn.text) == turn.text.strip(),
            f"The user said a control token, role label or reasoning: {turn.text[:80]!r} ({when}). "
            "Wrap the simulator in GuardedUser; end dialogues with UserTurn.stop, never with a marker.",
        )
    return turns


def _check_openings(user: Simulator, tasks: Sequence[Task]) -> list[Dialogue]:
    blank = [Dialogue(task, seed) for task in tasks for seed in _SEEDS]
    opened = []
    for dialogue, turn in zip(blank, _ask(user, blank, "opening, empty history"), strict=True):
        task = dialogue.task
        _require(turn.stop is None, f"The user left in the opening of task {task.task_id!r}. Set stop=None there.")
        shown = _holds(turn.text, task.reference) and not _holds(task.instruction, task.reference)
        _require(
            not shown, f"The opening of task {task.task_id!r} gives the reference away. Open with the instruction."
        )
        opened.append(dialogue.then("user", turn.text))
    return opened


def _holds(text: str, reference: str) -> bool:
    """Return True if the reference stands in the text as whole words."""
    padded = f" {' '.join(text.lower().split())} "
    return bool(reference.strip()) and any(
        f" {' '.join(reference.lower().split())}{end}" in padded for end in (" ", ". ", ", ", "! ", "? ")
    )


def _check_pure(user: Simulator, dialogues: Sequence[Dialogue]) -> None:
    together = _ask(user, dialogues, "a batch")
    again = _ask(user, dialogues, "the same batch again")
    cause = "A turn may depend on the dialogue alone: seed local randomness with dialogue.seed and the turn's number"
    _require(
        again == together,
        f"The same dialogues got different turns. {cause}, keep no state between calls; "
        "pass stochastic=True if that cannot be.",
    )
    backwards = _ask(user, dialogues[::-1], "a batch in reverse order")[::-1]
    _require(backwards == together, "Turns do not follow the order of the dialogues. Return them in the order given.")
    alone = [_ask(user, [dialogue], "a dialogue alone")[0] for dialogue in dialogues]
    _require(alone == together, f"A dialogue alone got another turn than in its batch. {cause}, not the batch.")


def _check_odd_replies(user: Simulator, openings: Sequence[Dialogue]) -> None:
    for name, reply in _ODD_REPLIES.items():
        _ask(user, [openings[0].then("assistant", reply)], f"the assistant sent {name}")


def _check_ends(user: Simulator, openings: Sequence[Dialogue], max_turns: int) -> None:
    going = list(openings)
    for k in range(max_turns):
        waiting = [dialogue.then("assistant", _REPLIES[k % len(_REPLIES)]) for dialogue in going]
        turns = _ask(user, waiting, f"turn {k + 2}")
        pairs = zip(waiting, turns, strict=True)
        going = [dialogue.then("user", turn.text) for dialogue, turn in pairs if turn.stop is None]
        if not going:
            return
    raise DuologueError(
        f"The user went on for {max_turns} turns without leaving. Set UserTurn.stop when satisfied or out of patience; "
        "pass max_turns=0 if this user never leaves by design."
    )


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise DuologueError(message)
