"""Evaluations in environments that are objects: a user of one's own, and an environment of somebody else's."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from duologue.analysis import EvaluateConfig, evaluate
from duologue.envs import DialogueVectorEnv, MathChatVectorEnv
from duologue.envs.tasks import TaskList
from duologue.errors import DuologueError
from duologue.simulators import ScriptedMathUser
from duologue.trainers import FunctionAgent
from duologue.types import Dialogue, StopReason, Task, UserTurn

pytestmark = pytest.mark.usefixtures("agents")
CONFIG = EvaluateConfig(agent="eval_agents:adder", episodes=12, num_envs=5, output="out")
TASKS = TaskList([Task(name, "greet me", reference=name) for name in ("Ada", "Alan")], "names")


class Newcomer:
    """Wants to be greeted by name."""

    signature = "newcomer"

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        return [self.turn(dialogue) for dialogue in dialogues]

    def turn(self, dialogue: Dialogue) -> UserTurn:
        if dialogue.messages:
            return UserTurn("Bye.", StopReason.USER_GAVE_UP)
        return UserTurn(f"Hi, I am {dialogue.task.reference}.")


def greeted(dialogues: Sequence[Dialogue]) -> list[float | None]:
    return [float(d.task.reference in " ".join(d.said_by("assistant"))) for d in dialogues]


def polite(messages: Any) -> str:
    return messages[0]["content"].replace("Hi, I am", "Hello")  # type: ignore[no-any-return]


def newcomers(slots: int) -> DialogueVectorEnv:
    return DialogueVectorEnv(slots, TASKS, Newcomer(), greeted, max_turns=2)


def run_json() -> Any:
    return json.loads(Path("out/run.json").read_text())


def test_a_user_that_is_an_object() -> None:
    asked: list[int] = []
    report = evaluate(CONFIG, FunctionAgent(polite), lambda slots: asked.append(slots) or newcomers(slots))  # type: ignore[func-returns-value]
    assert asked == [5]
    assert (report.score.value, report.scored) == (1.0, 12)
    assert report.stop_reasons.keys() == {"user_gave_up"}
    for part in ("env:DialogueEnv", "tasks:names", "user:newcomer", "max_turns:2", "|n:12"):
        assert part in report.signature
    config = run_json()["config"]
    assert (config["env"], config["simulator"], config["tasks"], config["max_turns"]) == ("DialogueEnv", *[None] * 3)
    assert config["episodes"] == 12
    assert json.loads(Path("out/report.json").read_text())["config"] == config


def test_the_same_parts_as_objects_or_by_name_measure_the_same() -> None:
    def made(slots: int) -> MathChatVectorEnv:
        return MathChatVectorEnv(slots, simulator=ScriptedMathUser("held-out"), tasks="math:level=1,split=test")

    by_name, by_object = evaluate(CONFIG), evaluate(replace(CONFIG, output="other"), make_env=made)
    assert by_object.to_json() == by_name.to_json()
    assert evaluate(CONFIG, make_env=made).to_json() == by_name.to_json()  # one measurement, so it has nothing to play


def test_another_user_is_another_measurement() -> None:
    evaluate(CONFIG, FunctionAgent(polite), newcomers)
    with pytest.raises(DuologueError, match=r"another evaluation: .*user:newcomer"):
        evaluate(CONFIG, FunctionAgent(polite))


class Foreign(gym.vector.VectorEnv[Any, Any, Any]):
    """Somebody else's environment: says a number, wants it back. No signature, task source or infos of ours."""

    metadata = {"autoreset_mode": AutoresetMode.DISABLED}  # noqa: RUF012

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.numbers = [0] * num_envs
        self.over = np.zeros(num_envs, dtype=np.bool_)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        for i in np.flatnonzero(options["reset_mask"]):
            self.numbers[i] = int(np.random.default_rng(seed[i]).integers(100))
            self.over[i] = False
        return tuple(map(str, self.numbers)), {}

    def step(self, actions: Any) -> Any:
        right = np.array([action == str(n) for action, n in zip(actions, self.numbers, strict=True)])
        self.over |= True
        return ("",) * self.num_envs, right.astype(float), self.over.copy(), np.zeros_like(self.over), {}

    def cut(self, mask: Any, reason: StopReason) -> Any:
        raise AssertionError("no limit bites here")


def test_an_environment_of_somebody_else() -> None:
    report = evaluate(CONFIG, FunctionAgent(lambda messages: messages[-1]["content"], "parrot"), Foreign)
    assert (report.metric, report.score.value, report.scored) == ("reward", 1.0, 12)
    assert report.signature.startswith("env:Foreign|agent:")
    assert report.user_leaks is None
    assert run_json()["config"]["env"] == "Foreign"


def test_an_environment_that_cannot_be_cut_is_refused() -> None:
    def plain(slots: int) -> Any:
        return gym.make_vec("duologue.envs:MathChat-v0", slots, vectorization_mode="sync")

    with pytest.raises(DuologueError, match=r"has no cut\(mask, reason\)"):
        evaluate(CONFIG, make_env=plain)
