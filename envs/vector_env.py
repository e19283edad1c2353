"""Many dialogues side by side, whose waiting users are sent to the simulator in one call a turn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from duologue.envs.contexts import LoggedContexts
from duologue.envs.dynamics import DialogueDynamics, Transition
from duologue.envs.parts import CALL_TIMEOUT, MAX_CHARS, check_options, info_of, make_parts
from duologue.envs.spaces import UnicodeText
from duologue.envs.tasks.base import TaskSource
from duologue.envs.transcript import transcript
from duologue.errors import DuologueError
from duologue.rewards.base import Reward
from duologue.simulators.base import Simulator
from duologue.types import StopReason

Flags = NDArray[np.bool_]
Texts = tuple[str, ...]
Step = tuple[Texts, NDArray[np.float64], Flags, Flags, dict[str, Any]]


class DialogueVectorEnv(gym.vector.VectorEnv[Texts, Sequence[str], NDArray[Any]]):
    """N dialogues, each as in ``DialogueEnv``; the same seeds give the same dialogues.

    Nothing is reset by itself (``AutoresetMode.DISABLED``), since that would call the user for dialogues that nobody
    asked for. A finished slot ignores its action: observation "", reward 0.0, its flags stay as they are, ``infos``
    leaves it out, and neither simulator nor reward is called for it.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["ansi"],
        "render_fps": 1,
        "autoreset_mode": AutoresetMode.DISABLED,
    }
    env_id: ClassVar[str] = "DialogueEnv"

    def __init__(
        self,
        num_envs: int,
        tasks: TaskSource | None,
        simulator: Simulator,
        reward: Reward,
        max_turns: int = 8,
        max_chars: int = MAX_CHARS,
        call_timeout: float | None = CALL_TIMEOUT,
        render_mode: str | None = None,
        contexts: LoggedContexts | str | Path | None = None,
    ) -> None:
        """Make N environments; the other arguments are those of ``DialogueEnv``.

        Raises:
            DuologueError: if an argument cannot work.
        """
        if num_envs < 1:
            raise DuologueError(f"num_envs is {num_envs}. Pass at least 1.")
        if render_mode not in (None, "ansi"):
            raise DuologueError(f"Vector environments cannot render {render_mode!r}. Pass 'ansi' or nothing.")
        dynamics = DialogueDynamics(simulator, reward, max_turns, max_chars, call_timeout)
        self.parts = make_parts(tasks, dynamics, contexts)
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_observation_space = self.single_action_space = UnicodeText(max_chars)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._rngs: list[np.random.Generator | None] = [None] * num_envs
        self._slots: list[Transition] = []
        self._texts = [""] * num_envs
        self._terminations = np.zeros(num_envs, dtype=np.bool_)
        self._truncations = np.zeros(num_envs, dtype=np.bool_)

    @property
    def signature(self) -> str:
        """Return what numbers measured here carry: environment, tasks, user, reward, limits, version."""
        return self.parts.signature(self.env_id)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Texts, dict[str, Any]]:
        """Start dialogues in all slots, or in those of ``options["reset_mask"]``, with one call of the simulator.

        Args:
            seed: one seed per slot, or an int s for s, s+1, …; None goes on with each slot's generator.
            options: ``reset_mask``, a bool array of shape (N,); ``task_id``, one id for all, or one (or None) per slot;
                ``context_id``, the same for logged contexts.

        Returns:
            The latest user message of every slot, and infos of the slots that were reset.

        Raises:
            DuologueError: for an unknown option, task id or context id, or a wrong length.
        """
        options = dict(check_options(options, ("reset_mask", "task_id", "context_id")))
        slots = self._masked(options.get("reset_mask", np.ones(self.num_envs, dtype=np.bool_)), "reset_mask")
        if not self._slots and len(slots) < self.num_envs:
            raise DuologueError("The first reset must start every slot. Leave out reset_mask.")
        ids, contexts = (self._per_slot(options.get(name), name) for name in ("task_id", "context_id"))
        self._seed(slots, self._seeds(seed))
        opened = self.parts.open([self._rng(i) for i in slots], [ids[i] for i in slots], [contexts[i] for i in slots])
        self._slots = self._slots or list(opened)
        self._terminations[slots] = self._truncations[slots] = False
        return self._arrive(dict(zip(slots, opened, strict=True)))

    def step(self, actions: Sequence[str]) -> Step:
        """Say ``actions[i]`` to user i, with one call of the simulator for all who answer.

        Returns:
            Observations (a tuple of N strings), rewards, terminations, truncations (arrays of shape (N,)) and infos.

        Raises:
            DuologueError: before the first reset, for a wrong number of actions, or for one that is no string.
        """
        if isinstance(actions, str):
            raise DuologueError(f"The actions are one str. Pass a list of {self.num_envs} strings, one for each slot.")
        if len(actions) != self.num_envs:
            raise DuologueError(
                f"{len(actions)} actions for {self.num_envs} slots. Pass a list with a string for each."
            )
        active = self._active()
        talking = [i for i in active if self._slots[i].dialogue.stop is None]
        dialogues = [self._slots[i].dialogue for i in talking]
        replied = self.parts.dynamics.reply(dialogues, [actions[i] for i in talking])
        # What is active but not talking are users who failed to open: their dialogues end now.
        return self._advance({i: self._slots[i] for i in active} | dict(zip(talking, replied, strict=True)))

    def cut(self, mask: Flags, reason: StopReason) -> Step:
        """End the dialogues of some slots because a limit outside the environment bit, such as a token budget.

        Args:
            mask: bool array of shape (N,). Slots that are over already stay as they are.
            reason: a limit, whose dialogues are still scored, or ``policy_error``, whose are not.

        Returns:
            As ``step``; slots outside the mask show their latest user message and reward 0.0.

        Raises:
            DuologueError: for a wrong mask, or a reason that is the user's to decide.
        """
        active, masked = self._active(), self._masked(mask, "mask")
        slots = [i for i in masked if i in active]
        talking = [i for i in slots if self._slots[i].dialogue.stop is None]
        ended = self.parts.dynamics.cut([self._slots[i].dialogue for i in talking], reason)
        others = {i: self._texts[i] for i in active if i not in slots}
        return self._advance({i: self._slots[i] for i in slots} | dict(zip(talking, ended, strict=True)), others)

    def render(self) -> tuple[str, ...] | None:
        """Return the N transcripts in mode "ansi"."""
        if self.render_mode != "ansi":
            return None
        return tuple(transcript(slot.dialogue) for slot in self._slots) or ("",) * self.num_envs

    def _advance(self, moved: dict[int, Transition], texts: dict[int, str] | None = None) -> Step:
        rewards = np.zeros(self.num_envs)
        self._texts = [(texts or {}).get(i, "") for i in range(self.num_envs)]
        for i, transition in moved.items():
            rewards[i] = transition.reward
            self._terminations[i], self._truncations[i] = transition.terminated, transition.truncated
        observations, infos = self._arrive(moved)
        return observations, rewards, self._terminations.copy(), self._truncations.copy(), infos

    def _arrive(self, moved: dict[int, Transition]) -> tuple[Texts, dict[str, Any]]:
        infos: dict[str, Any] = {}
        for i, transition in moved.items():
            self._slots[i], self._texts[i] = transition, transition.observation
            infos = self._add_info(infos, info_of(transition), i)
        return tuple(self._texts), infos

    def _active(self) -> list[int]:
        if not self._slots:
            raise DuologueError("There are no dialogues to continue. Call reset() first.")
        return [int(i) for i in np.flatnonzero(~(self._terminations | self._truncations))]

    def _masked(self, mask: Any, name: str) -> list[int]:
        mask = np.asarray(mask)
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise DuologueError(f"{name} has shape {mask.shape}, type {mask.dtype}. Pass {self.num_envs} bools.")
        return [int(i) for i in np.flatnonzero(mask)]

    def _per_slot(self, value: Any, name: str) -> list[Any]:
        values = [value] * self.num_envs if value is None or isinstance(value, str) else list(value)
        if len(values) != self.num_envs:
            raise DuologueError(f"{name} has {len(values)} values for {self.num_envs} slots. Pass one for each.")
        return values

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if isinstance(seed, int | np.integer):
            return [int(seed) + i for i in range(self.num_envs)]
        return self._per_slot(seed, "seed")

    def _seed(self, slots: Sequence[int], seeds: Sequence[int | None]) -> None:
        for i in slots:
            if seeds[i] is not None:
                self._rngs[i], _ = seeding.np_random(seeds[i])

    def _rng(self, slot: int) -> np.random.Generator:
        rng = self._rngs[slot] or seeding.np_random()[0]
        self._rngs[slot] = rng
        return rng
