"""Finite dialogues: states, replies and users as arrays, small enough that everything about them can be worked out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from duologue.errors import DuologueError

Array = NDArray[np.float64]
TOLERANCE = 1e-9
"""How far the sum of a distribution may be from 1."""
_HORIZON = 4


@dataclass(frozen=True, eq=False)
class TabularDialogue:
    """A finite dialogue of H turns between an assistant with A replies and a user whose message is one of S states.

    Turn t = 0, …, H - 1 is a message of the user, then a reply. The user opens turn 0 by ``opening``, and turn t + 1 by
    ``user``. The reply of turn t is paid by ``rewards[t]``; the last reply is paid, and not answered. The user is
    Markov: what more of the history matters has to be part of the state, and the whole history may be.

    Leading axes (…), the same in all three arrays, are a batch of dialogues that the theory works out at once.
    """

    opening: Array
    """(…, S): probability of each first message."""
    user: Array
    """(…, S, A, S): ``user[s, a, s']`` is the probability that the user answers reply a to message s with s'."""
    rewards: Array
    """(…, H, S, A): what reply a to message s is paid at turn t. Zero before the last turn = a final reward only."""

    def __post_init__(self) -> None:
        """Take copies that cannot be written to, and check them.

        Raises:
            DuologueError: if shapes do not fit, a distribution is none, or a reward is not finite.
        """
        for name in ("opening", "user", "rewards"):
            object.__setattr__(self, name, _frozen(name, getattr(self, name)))
        shape = self.rewards.shape
        if len(shape) < 3 or 0 in shape:
            raise DuologueError(f"rewards has the shape {shape}. Give (H, S, A), each at least 1.")
        batch, (_, states, replies) = shape[:-3], shape[-3:]
        check_distribution("opening", self.opening, (*batch, states))
        check_distribution("user", self.user, (*batch, states, replies, states))

    @property
    def horizon(self) -> int:
        """Number of turns H."""
        return int(self.rewards.shape[-3])

    @property
    def states(self) -> int:
        """Number of the user's messages S."""
        return int(self.rewards.shape[-2])

    @property
    def replies(self) -> int:
        """Number of the assistant's replies A."""
        return int(self.rewards.shape[-1])

    @property
    def batch(self) -> tuple[int, ...]:
        """Return the leading axes; () for one dialogue."""
        return self.rewards.shape[:-3]

    def with_user(self, user: ArrayLike, opening: ArrayLike | None = None) -> TabularDialogue:
        """Return the same dialogue with another user, who opens as before if ``opening`` is None.

        Raises:
            DuologueError: as for a new dialogue.
        """
        opens = self.opening if opening is None else _frozen("opening", opening)
        return TabularDialogue(opens, _frozen("user", user), self.rewards)

    def final_only(self) -> TabularDialogue:
        """Return the same dialogue, of which only the last reply is paid."""
        rewards = np.zeros_like(self.rewards)
        rewards[..., -1, :, :] = self.rewards[..., -1, :, :]
        return replace(self, rewards=rewards)


def losing_track(horizon: int) -> TabularDialogue:
    """Return a dialogue of two states in which one wrong reply is never made good.

    State 0 is on track, state 1 is lost. Reply 0 is right, reply 1 is wrong. A right reply on track is paid 1 and keeps
    the dialogue there; a wrong one loses it for good; nothing is paid when lost.

    Args:
        horizon: number of turns H.

    Raises:
        DuologueError: if the horizon is less than 1.
    """
    if horizon < 1:
        raise DuologueError(f"horizon is {horizon}. Set it to 1 or more.")
    user = np.zeros((2, 2, 2))
    user[0, 0, 0] = 1.0
    user[0, 1, 1] = user[1, :, 1] = 1.0
    rewards = np.zeros((horizon, 2, 2))
    rewards[:, 0, 0] = 1.0
    return TabularDialogue(np.array([1.0, 0.0]), user, rewards)


class TabularDialogueEnv(gym.Env[int, int]):
    """A finite dialogue as a Gymnasium environment.

    Observation: the user's message (``Discrete(S)``). Action: the reply (``Discrete(A)``). Reward:
    ``rewards[t, s, a]``. The episode terminates after H replies; since the last one is not answered, the last
    observation repeats. ``info["turn"]`` counts the replies so far.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(
        self, dialogue: TabularDialogue | None = None, user: ArrayLike | None = None, opening: ArrayLike | None = None
    ) -> None:
        """Make the environment.

        Args:
            dialogue: the dialogue; None = ``losing_track`` with four turns.
            user: (S, A, S), another user in the place of the dialogue's own: the simulator-induced shift.
            opening: (S,), how that user opens; None = as the dialogue's own does.

        Raises:
            DuologueError: if an array does not fit, or the dialogue is a batch.
        """
        dialogue = losing_track(_HORIZON) if dialogue is None else dialogue
        if dialogue.batch:
            raise DuologueError(f"The dialogue is a batch of shape {dialogue.batch}. Give one dialogue.")
        self.dialogue = dialogue.with_user(
            dialogue.user if user is None else user, dialogue.opening if opening is None else opening
        )
        self._opening, self._user = cumulated(self.dialogue.opening), cumulated(self.dialogue.user)
        self.observation_space = gym.spaces.Discrete(self.dialogue.states)  # type: ignore[assignment]
        self.action_space = gym.spaces.Discrete(self.dialogue.replies)  # type: ignore[assignment]
        self._state = self._turn = 0
        self._over = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Let the user open.

        Args:
            seed: seeds the user from here on.
            options: none are known.

        Raises:
            DuologueError: if an option is given.
        """
        super().reset(seed=seed)
        if options:
            raise DuologueError(f"There are no options here, but {sorted(options)} came. Give none.")
        self._state, self._turn, self._over = draw(self._opening, self.np_random), 0, False
        return self._state, {"turn": 0}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Say a reply and let the user answer.

        Raises:
            DuologueError: if the reply is not in the action space, or the episode is over.
        """
        if self._over:
            raise DuologueError("There is no dialogue to go on with. Call reset() first.")
        if not self.action_space.contains(action):
            raise DuologueError(f"There is no reply {action!r}. Give an int from 0 to {self.dialogue.replies - 1}.")
        reward = float(self.dialogue.rewards[self._turn, self._state, action])
        self._turn += 1
        self._over = self._turn == self.dialogue.horizon
        if not self._over:
            self._state = draw(self._user[self._state, action], self.np_random)
        return self._state, reward, self._over, False, {"turn": self._turn}


def cumulated(distributions: Array) -> Array:
    """Return the running sums of distributions over the last axis, scaled to end at exactly 1."""
    sums = np.cumsum(distributions, axis=-1)
    result: Array = sums / sums[..., -1:]
    return result


def draw(sums: Array, rng: np.random.Generator) -> int:
    """Return an index drawn by the running sums (n,) of a distribution; one of probability 0 is never drawn."""
    return int(sums.searchsorted(rng.random(), side="right"))


def check_distribution(name: str, given: Array, shape: tuple[int, ...]) -> None:
    """Check that an array has this shape and that its last axis holds distributions.

    Raises:
        DuologueError: if not; the message names the array.
    """
    if given.shape != shape:
        raise DuologueError(f"{name} has the shape {given.shape}. Give {shape}.")
    if (given < 0).any() or (abs(given.sum(axis=-1) - 1.0) > TOLERANCE).any():
        raise DuologueError(f"{name} has a row that is no distribution. Let each be non-negative and sum to 1.")


def _frozen(name: str, given: ArrayLike) -> Array:
    try:
        made = np.array(given, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise DuologueError(
            f"{name} is no array of numbers ({error}). Give NumPy's, or lists of equal lengths."
        ) from error
    if not np.isfinite(made).all():
        raise DuologueError(f"{name} has a value that is not finite. Give finite numbers.")
    made.flags.writeable = False
    return made
