"""What the shipped environments fill in, once for their single and their vector form."""

from __future__ import annotations

from typing import Literal

from duologue.envs.tasks.base import TaskSource
from duologue.rewards.base import Reward
from duologue.simulators.base import Simulator

EnvName = Literal["MathChat", "MediumDocEditChat"]
Parts = tuple[TaskSource | None, Simulator, Reward]


def fill_parts(
    env: EnvName,
    tasks: TaskSource | str | None,
    simulator: Simulator | str,
    reward: Reward | None,
    *,
    logged: bool = False,
) -> Parts:
    """Return the tasks, the user and the reward that the arguments name, or the environment's own where they are None.

    Imports are local: sympy, sacreBLEU and language models load when an environment needs them, not before.

    With ``logged`` contexts, which bring their own tasks, there are none to fill in.

    Raises:
        DuologueError: if a string names nothing; the message names the nearest.
    """
    from duologue.envs.tasks import make_tasks
    from duologue.simulators import make_simulator

    source = None if logged and tasks is None else make_tasks(tasks, env=env)
    return source, make_simulator(simulator, env=env), reward or _default_reward(env)


def _default_reward(env: EnvName) -> Reward:
    from duologue.rewards import BleuReward, ExactMatch

    return ExactMatch() if env == "MathChat" else BleuReward()
