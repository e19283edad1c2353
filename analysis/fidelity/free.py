"""Free dialogues of a user with one agent, on the tasks that people had."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import gymnasium as gym

from duologue.analysis.fidelity.replay import Beside, OnTurns
from duologue.analysis.fidelity.turns import talk_of_episode
from duologue.analysis.play import play
from duologue.analysis.store import EvaluationFolder
from duologue.envs.making import named_errors
from duologue.rewards import signature_of
from duologue.simulators.base import Simulator
from duologue.trainers.agents import Agent, hash_seed
from duologue.trainers.rollout import Start
from duologue.types import Task

_SLOTS = 32


def converse(
    simulator: Simulator,
    agent: Agent,
    tasks: Sequence[Task],
    env: str,
    count: int,
    folder: Path,
    *,
    seed: int = 0,
    on_turns: OnTurns | None = None,
) -> Beside:
    """Play dialogues; the tasks come in turn. Dialogues that break are left out and counted.

    Args:
        simulator: the user.
        agent: the assistant, the same for every user.
        tasks: people's; of equal ids the first counts.
        env: environment id.
        count: dialogues.
        folder: keeps the episodes; called again, only what is missing is played.
        seed: of users and agent.
        on_turns: follows the dialogues.

    Raises:
        DuologueError: if the environment cannot be made, or the folder holds other dialogues.
    """
    known = {task.task_id: task for task in reversed(tasks)}
    names = list(dict.fromkeys(task.task_id for task in tasks))
    starts = [
        Start(hash_seed("fidelity-env", seed, i), hash_seed("fidelity-agent", seed, i), names[i % len(names)])
        for i in range(count)
    ]
    store = EvaluationFolder(str(folder))
    done = {episode.seed: episode for episode in store.read(resume=True)}
    said = sha256(repr([known[name].to_json() for name in names]).encode()).hexdigest()[:16]
    identity = f"env:{env}|user:{signature_of(simulator)}|agent:{agent.signature}|tasks:{said}|seed:{seed}"
    store.claim(identity, {"env": env, "seed": seed}, afresh=False)
    slots = max(1, min(_SLOTS, sum(start.seed not in done for start in starts)))
    episodes = play(
        _vector_env(env, slots, simulator, [known[name] for name in names]),
        agent,
        starts,
        done,
        store.episodes,
        (lambda finished, total, _: on_turns(finished, total)) if on_turns else None,
    )
    found = Beside()
    for episode in episodes:
        if episode.stop_reason.is_error:
            found.failed[" ".join((episode.error or episode.stop_reason.value).split())] += 1
        else:
            found.talks.append(talk_of_episode(episode, known[episode.task_id]))
    return found


def _vector_env(
    env: str, slots: int, simulator: Simulator, tasks: Sequence[Task]
) -> gym.vector.VectorEnv[Any, Any, Any]:
    with named_errors(env):
        return gym.make_vec(
            env, num_envs=slots, vectorization_mode="vector_entry_point", simulator=simulator, tasks=list(tasks)
        )
