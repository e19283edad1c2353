"""The shipped environments with everything at its default, as Gymnasium makes them."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import duologue.envs
from duologue.errors import DuologueError
from duologue.types import Dialogue

FORKS = "ignore:.*multi-threaded, use of fork:DeprecationWarning"
SAID = (
    "Which facts do you have? Tell me more.",
    "The answer is 7.",
    "A draft:\n\nA short text.\n\nIs that it?",
)
both = pytest.mark.parametrize("env_id", duologue.envs.ENV_IDS)


def first_dialogue(env: Any, seed: int) -> list[Any]:
    """Return what the first slot sees, until its end."""
    seen = [env.reset(seed=seed)[0][0]]
    for text in SAID:
        observations, rewards, terminations, truncations, infos = env.step((text,) * env.num_envs)
        flags = bool(terminations[0]), bool(truncations[0])
        seen += [observations[0], float(rewards[0]), *flags, infos["messages"][0]]
        if any(flags):
            break
    return seen


@both
def test_check_env_passes(env_id: str) -> None:
    check_env(gym.make(f"duologue.envs:{env_id}").unwrapped)


@both
@pytest.mark.filterwarnings(FORKS)
def test_sync_async_and_native_vectors_agree(env_id: str) -> None:
    disabled = {"autoreset_mode": AutoresetMode.DISABLED}
    ways: list[dict[str, Any]] = [
        {},
        {"vectorization_mode": "sync", "vector_kwargs": disabled},
        {"vectorization_mode": "async", "vector_kwargs": {**disabled, "context": "fork"}},
    ]
    dialogues = []
    for way in ways:
        env = gym.make_vec(env_id, num_envs=2, **way)
        dialogues.append(first_dialogue(env, 3))
        env.close()
    assert dialogues[0] == dialogues[1] == dialogues[2]
    assert dialogues[0] != first_dialogue(gym.make_vec(env_id, num_envs=2), 4)


def test_async_with_spawned_processes_agrees_too() -> None:
    spawned = gym.make_vec(
        "duologue.envs:MathChat-v0", 1, "async", {"context": "spawn", "autoreset_mode": AutoresetMode.DISABLED}
    )
    assert first_dialogue(spawned, 3) == first_dialogue(gym.make_vec("MathChat-v0", 1), 3)
    spawned.close()


@both
def test_a_seed_reproduces_a_dialogue_exactly(env_id: str) -> None:
    def run(seed: int) -> list[Any]:
        env = gym.make(env_id)
        results: list[Any] = [env.reset(seed=seed)]
        for text in SAID:
            results.append(env.step(text))
            if results[-1][2] or results[-1][3]:
                break
        return results

    assert run(8) == run(8)
    assert len({run(seed)[0][0] for seed in range(8)}) > 1


@both
def test_the_simulator_is_an_argument_and_hears_every_turn(env_id: str) -> None:
    heard: list[int] = []

    class Listener:
        def __init__(self) -> None:
            from duologue.simulators import make_simulator

            self.user = make_simulator("scripted", env=env_id)

        def respond(self, dialogues: Sequence[Dialogue]) -> Any:
            heard.append(len(dialogues[0].messages))
            return self.user.respond(dialogues)

    env = gym.make(env_id, simulator=Listener(), max_turns=3)
    env.reset(seed=0)
    env.step("What else should I know?")
    assert heard == [0, 2]


@both
def test_arguments_reach_the_parts(env_id: str) -> None:
    env: Any = gym.make(env_id, simulator="scripted:held-out", max_turns=2, max_chars=500).unwrapped
    vector: Any = gym.make_vec(env_id, 2, simulator="scripted:held-out", max_turns=2, max_chars=500)
    assert env.signature == vector.signature
    assert env.signature.startswith(f"env:{env_id}|tasks:")
    assert "|max_turns:2|max_chars:500|" in env.signature
    assert "held-out" in env.signature
    env.reset(seed=0)
    env.step("Hm.")
    assert env.step("Hm.")[3]


@both
def test_mistakes_in_arguments_name_the_nearest(env_id: str) -> None:
    with pytest.raises(DuologueError, match="Did you mean 'scripted'"):
        gym.make(env_id, simulator="scriptd")
    with pytest.raises(DuologueError, match="nonsense"):
        gym.make(env_id, tasks="nonsense")
    with pytest.raises(TypeError, match="max_turn"):
        gym.make(env_id, max_turn=3)


@both
def test_the_hidden_part_of_the_task_is_not_shown(env_id: str) -> None:
    env: Any = gym.make(env_id).unwrapped
    for seed in range(5):
        observation, info = env.reset(seed=seed)
        task = env.parts.tasks.find(info["task_id"])
        shown = repr((observation, info))
        assert not any(text in shown for text in (task.solution, *task.facts, *task.outline) if text)
        assert len(task.reference) < 20 or task.reference not in shown
        assert set(info) == {"task_id", "messages", "acts", "user_notes"}


@both
def test_64_native_dialogues_run_to_their_ends(env_id: str) -> None:
    env = gym.make_vec(env_id, num_envs=64, max_turns=3)
    env.reset(seed=0)
    scored = np.zeros(64, dtype=bool)
    for text in SAID:
        _, rewards, terminations, truncations, infos = env.step([text] * 64)
        scored |= np.asarray(infos.get("scored", scored), dtype=bool)
        assert ((rewards >= 0) & (rewards <= 1)).all()
    assert (terminations | truncations).all()
    assert scored.all()


def test_importing_registers_and_loads_nothing_heavy() -> None:
    heavy = ["torch", "transformers", "sympy", "math_verify", "sacrebleu", "jinja2", "httpx", "rich", "datasets"]
    code = (
        "import sys, duologue.envs, gymnasium; assert 'envs' not in sys.modules;"
        "assert set(duologue.envs.ENV_IDS) <= set(gymnasium.registry);"
        f"sys.exit(str([m for m in {heavy} if m in sys.modules]) if set({heavy}) & set(sys.modules) else 0)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_registering_twice_is_silent() -> None:
    before = dict(gym.registry)
    duologue.envs.registration.register()  # a warning would be an error
    assert gym.registry.keys() == before.keys()


def test_every_public_name_is_there_and_a_wrong_one_is_not() -> None:
    assert all(getattr(duologue.envs, name) is not None for name in duologue.envs.__all__)
    with pytest.raises(AttributeError, match="MathChatt"):
        _ = duologue.envs.MathChatt


def test_a_task_id_that_is_no_text_is_refused() -> None:
    with pytest.raises(DuologueError, match="Pass the id as a str"):
        gym.make("MathChat-v0").reset(options={"task_id": 5})
