"""Deviations per turn, and what they bound."""

import math
from collections.abc import Callable, Sequence

import gymnasium as gym
import numpy as np
import pytest

from duologue.analysis.shift import (
    answers_on,
    bounds,
    mean_variation,
    pinsker_bound,
    policy_deviation,
    replies_on,
    user_deviation,
    variation_curve,
)
from duologue.analysis.shift.sampling import missing, user_seed
from duologue.analysis.shift.states import reached
from duologue.analysis.user_rates import Seen
from duologue.errors import DuologueError
from duologue.simulators import ScriptedMathUser
from duologue.trainers import FunctionAgent
from duologue.trainers.stats import Estimate
from duologue.types import Dialogue, Episode, Message, UserTurn

from .conftest import ASK, NO, TASK, TURNS, WRONG, Make

Look = Callable[[Episode], Seen]


def test_known_probabilities_are_exact() -> None:
    p, q = np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[0.2, 0.8], [0.0, 1.0]])
    assert mean_variation(p, q).value == pytest.approx((0.3 + 1.0) / 2)
    for wrong, message in ((q[:1], "shapes"), (q / 2, "sum to 1")):
        with pytest.raises(DuologueError, match=message):
            mean_variation(p, wrong)


def test_pinsker_by_hand() -> None:
    assert pinsker_bound([[0.08, 0.08], [0.08]]).value == pytest.approx(0.2)
    assert pinsker_bound([[-0.3], [0.1]]).value == 0.0
    assert pinsker_bound([[9.0], [9.0]]).value == 1.0
    assert math.isnan(pinsker_bound([]).value)


def test_pinsker_is_above_the_exact_variation() -> None:
    rng = np.random.default_rng(0)
    p, q = np.array([0.9, 0.1]), np.array([0.2, 0.8])
    acts = rng.choice(2, size=(400, 3), p=p)
    found = pinsker_bound((np.log(p) - np.log(q))[acts].tolist())
    assert found.low > mean_variation(p[None], q[None]).value


@pytest.mark.parametrize(("haste", "other"), [(0.5, 0.5), (0.2, 0.6)])
def test_policies_of_known_haste(known: Make, seen: Look, haste: float, other: float) -> None:
    """On the same contexts the acts differ by the difference of the rates, at every turn."""
    logs = [seen(e) for e in known(400, haste)]
    rng = np.random.default_rng(5)
    agent = FunctionAgent(lambda _: WRONG if rng.random() < other else ASK, "other")
    found = policy_deviation(logs, replies_on(agent, logs, TURNS, 32, 0), TURNS)
    for turn in found.turns:
        assert turn.estimate.low <= abs(haste - other) <= turn.estimate.high
    assert (found.p < 0.01) == (haste != other)


def test_users_of_known_openness(known: Make, seen: Look) -> None:
    own = [seen(e) for e in known(400, haste=0.5, tells=1.0)]
    rng = np.random.default_rng(6)

    class Closed:
        def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
            return [self._turn(d) for d in dialogues]

        def _turn(self, dialogue: Dialogue) -> UserTurn:
            guessed = dialogue.messages[-1]["content"] == WRONG
            told = sum(m["content"] in TASK.facts for m in dialogue.messages)
            return UserTurn(NO if guessed else TASK.facts[told] if rng.random() < 0.6 else "Hmm, no idea.")

    found = user_deviation(own, answers_on(Closed(), own, TURNS, 64, None), TURNS)
    assert found.turns[0].estimate.low <= 0.5 * 0.4 <= found.turns[0].estimate.high
    assert found.turns[TURNS - 1].estimate.value == 0.0  # nobody answers the last turn
    assert found.p < 0.01


def test_the_same_user_does_not_deviate(known: Make, seen: Look) -> None:
    user, one = ScriptedMathUser(), seen(known(1, 0.0)[0])
    said: tuple[Message, ...] = (*one.messages[:2],)
    turn = user.respond([Dialogue(TASK, user_seed(one.episode.seed), said)])[0]
    messages = (*said, Message(role="user", content=turn.text), Message(role="assistant", content=ASK))
    same = Seen(Episode("MathChat-v0", TASK.task_id, one.episode.seed, messages, one.episode.stop_reason, 0.0), TASK)
    found = user_deviation([same] * 12, answers_on(user, [same] * 12, 2, 5, None), 2)
    assert [t.plug_in for t in found.turns] == [0.0, 0.0]


def test_the_seed_of_a_user_is_the_one_that_environments_draw() -> None:
    env = gym.make("duologue.envs:MathChat-v0", simulator="scripted")
    opening, info = env.reset(seed=77)
    task = env.unwrapped.parts.tasks.find(info["task_id"])  # type: ignore[attr-defined]
    assert ScriptedMathUser().respond([Dialogue(task, user_seed(77))])[0].text == opening


def test_a_failing_agent_or_user_leaves_a_gap(known: Make, seen: Look) -> None:
    logs = [seen(e) for e in known(4, 0.5)]

    def fails(messages: list[Message]) -> str:
        if len(messages) > 2:
            raise RuntimeError("not today")
        return ASK

    class Broken:
        def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
            raise RuntimeError("gone")

    steps: list[tuple[int, int]] = []
    replies = replies_on(FunctionAgent(fails), logs, TURNS, 5, 0, lambda done, total: steps.append((done, total)))
    assert replies == [[ASK, None, None]] * 4
    assert missing(logs, replies, reached) == 8
    assert steps == [(5, 12), (10, 12), (12, 12)]
    assert answers_on(Broken(), logs, TURNS, 4, None) == [[None] * TURNS] * 4


def test_bounds_by_hand() -> None:
    """Two turns of 0.5 each, from labels without noise: an opening of 0.1 adds to both."""
    curve = variation_curve([["x", "x"], ["y", "y"]], [["x", "x"], ["x", "x"]])
    exactly = [Estimate(0.5, 0.4, 0.6, 4)] * 2
    curve = type(curve)(
        tuple(type(t)(e, t.plug_in, t.null, t.p) for t, e in zip(curve.turns, exactly, strict=True)), 1.0
    )
    found = bounds([curve], Estimate(0.1, 0.0, 0.2, 4), Estimate(-0.3, -0.4, -0.2, 4))
    assert found.linear.value == pytest.approx(0.1 + 0.5 + 0.5)
    assert found.quadratic.value == pytest.approx(2 * 0.1 + 2 * 0.5 + 1 * 0.5)
    assert (found.linear.low, found.linear.high) == pytest.approx((0.8, 1.4))
    assert found.held
    assert found.looseness == pytest.approx(1.1 / 0.3)
    both = bounds([curve, curve], Estimate(0.1, 0.0, 0.2, 4), Estimate(0.0, 0.0, 0.0, 4), reward_range=2.0)
    assert both.linear.value == pytest.approx(2 * 2.1)
    assert both.looseness is None
    assert not bounds([curve], Estimate(0.0, 0.0, 0.0, 4), Estimate(1.2, 1.1, 1.3, 4)).held
