import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import duologue.envs  # noqa: F401  (registers the environments)
from duologue.simulators import ReplayUser
from duologue.simulators._random import draw_seed, seed_after_reset
from duologue.trainers import FunctionAgent, Rollout, Start
from duologue.types import Dialogue, Episode, Message, StopReason, Task

TASKS = [
    Task(f"t{i}", "How many chairs?", "17", facts=("3 tables.", f"Each seats {i}.", "One is broken.")) for i in "45"
]


def rollout(simulator: str, starts: Sequence[Start], reply: str, tasks: Any = TASKS) -> list[Episode]:
    env = gym.make_vec("MathChat-v0", 5, "vector_entry_point", simulator=simulator, tasks=tasks, max_turns=6)
    return Rollout(env, FunctionAgent(lambda messages: reply, "constant")).play(starts)


def user_side(episode: Episode) -> tuple[object, ...]:
    return (episode.task_id, episode.stop_reason, *(m["content"] for m in episode.messages if m["role"] == "user"))


@pytest.mark.parametrize("drawn", [True, False])
def test_the_seeds_and_tasks_of_a_file_bring_back_its_users(tmp_path: Path, drawn: bool) -> None:
    """Each task is logged with many users; whether the seed drew it or it was asked for makes no difference."""
    starts = [Start(seed, task_id=None if drawn else f"t{'45'[seed % 2]}") for seed in range(30)]
    logged = rollout("scripted", starts, "What do you know?")
    assert len({user_side(episode) for episode in logged}) > 10
    log = tmp_path / "episodes.jsonl"
    log.write_text("".join(json.dumps(episode.to_json()) + "\n" for episode in logged), encoding="utf-8")
    again = [Start(episode.seed, task_id=episode.task_id) for episode in logged]
    replayed = rollout(f"replay:{log}", again, "The answer is 1.", tasks=TASKS[::-1])
    assert [user_side(episode) for episode in replayed] == [user_side(episode) for episode in logged]
    assert all(a.messages[1] != b.messages[1] for a, b in zip(logged, replayed, strict=True))


@pytest.mark.parametrize("seed", [0, 7, 2**80 + 1])
def test_the_dialogue_of_a_reset_has_the_seed_that_replay_expects(seed: int) -> None:
    rng, _ = gym.utils.seeding.np_random(seed)
    assert seed_after_reset(seed) == draw_seed(rng)
    env: Any = gym.make("MathChat-v0").unwrapped
    for options in (None, {"task_id": env.parts.tasks.draw(np.random.default_rng(1)).task_id}):
        env.reset(seed=seed, options=options)
        assert env._now.dialogue.seed == seed_after_reset(seed)


def test_logs_may_hold_line_separators_of_unicode(tmp_path: Path) -> None:
    said = "one\u2028two\x85three"
    messages = (Message(role="user", content=said), Message(role="assistant", content=said))
    episode = Episode("E", "t", 1, messages, StopReason.TURN_LIMIT, 0.0)
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps(episode.to_json(), ensure_ascii=False) + "\n", encoding="utf-8")
    user = ReplayUser.from_jsonl(log)
    assert user.respond([Dialogue(Task("t", "?", "!"), 1)])[0].text == said
