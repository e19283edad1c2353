"""What goes wrong when an environment is made by its id, in words."""

from collections.abc import Iterator
from contextlib import contextmanager

import gymnasium as gym

from duologue.envs.registration import ENV_IDS
from duologue.errors import DuologueError, did_you_mean


@contextmanager
def named_errors(env: str) -> Iterator[None]:
    """Turn the errors of making an environment into ours, with the nearest id.

    Raises:
        DuologueError: if there is no such environment, or it is none of dialogue.
    """
    try:
        yield
    except gym.error.UnregisteredEnv as error:
        raise DuologueError(f"There is no environment {env!r}. {did_you_mean(env, ENV_IDS)}") from error
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        raise DuologueError(
            f"{env} is no dialogue environment ({error}). Choose one of {', '.join(ENV_IDS)}."
        ) from error
    except gym.error.Error as error:
        raise DuologueError(f"{env} cannot be made: {error} Choose one of {', '.join(ENV_IDS)}.") from error
