"""One dialogue at a time: the latest user message in, the assistant's text out."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym

from duologue.envs.contexts import LoggedContexts
from duologue.envs.dynamics import DialogueDynamics, Transition
from duologue.envs.parts import CALL_TIMEOUT, MAX_CHARS, check_options, info_of, make_parts
from duologue.envs.spaces import UnicodeText
from duologue.envs.tasks.base import TaskSource
from duologue.envs.transcript import print_messages, transcript
from duologue.errors import DuologueError, did_you_mean
from duologue.rewards.base import Reward
from duologue.simulators.base import Simulator
from duologue.simulators.human import HumanUser


class DialogueEnv(gym.Env[str, str]):
    """A dialogue between an assistant, who acts, and a user, who is part of the environment.

    Observation: the latest user message. Action: the assistant's text. Reward: the outcome, once, at the end.
    ``info`` has ``task_id``, ``messages`` (the history), ``acts`` and ``user_notes`` of the user's latest turn; at the
    end also ``stop_reason``, ``scored`` and ``reward_parts``; ``error`` if something broke. What is hidden in the task
    is in neither.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "human"], "render_fps": 1}  # type: ignore[misc]
    env_id: ClassVar[str] = "DialogueEnv"

    def __init__(
        self,
        tasks: TaskSource | None,
        simulator: Simulator,
        reward: Reward,
        max_turns: int = 8,
        max_chars: int = MAX_CHARS,
        call_timeout: float | None = CALL_TIMEOUT,
        render_mode: str | None = None,
        contexts: LoggedContexts | str | Path | None = None,
    ) -> None:
        """Make the environment.

        Args:
            tasks: where tasks come from; None if ``contexts`` bring them.
            simulator: the user.
            reward: scores finished dialogues.
            max_turns: most replies of the assistant; the last one is scored but not answered.
            max_chars: most characters in a message. A longer reply ends the dialogue, and is scored as it is.
            call_timeout: seconds that one call of the simulator or of the reward may take; None = no limit.
            render_mode: "ansi" (``render`` returns the transcript), "human" (messages are printed as they come), None.
            contexts: logged histories (or a JSONL file of logged dialogues) that episodes begin with instead of the
                user's opening. ``max_turns`` and the reward then concern only what the assistant says after them.

        Raises:
            DuologueError: if an argument cannot work.
        """
        if render_mode not in (None, *self.metadata["render_modes"]):
            fix = did_you_mean(str(render_mode), self.metadata["render_modes"])
            raise DuologueError(f"There is no render mode {render_mode!r}. {fix}")
        dynamics = DialogueDynamics(simulator, reward, max_turns, max_chars, call_timeout)
        self.parts = make_parts(tasks, dynamics, contexts)
        self.observation_space = UnicodeText(max_chars)
        self.action_space = UnicodeText(max_chars)
        self.render_mode = render_mode
        self._now: Transition | None = None
        self._over = True
        self._printed = 0

    @property
    def signature(self) -> str:
        """Return what numbers measured here carry: environment, tasks, user, reward, limits, version."""
        return self.parts.signature(self.env_id)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start a dialogue; the same seed (and ``task_id``) starts the same one.

        Args:
            seed: seeds the choice of tasks and users from here on.
            options: ``{"task_id": …}`` asks for one task (with ``contexts``, for any of its contexts),
                ``{"context_id": …}`` for one logged context.

        Returns:
            The opening user message and ``info``. With ``contexts``, the last message of a logged history, which
            ``info["messages"]`` has as a whole, and ``info["context_id"]``. If the user failed to open, the message is
            "", ``info`` has ``stop_reason`` and ``error``, and the next step returns at once, truncated and not scored.

        Raises:
            DuologueError: for an unknown option or task id (the message names the nearest), or an unknown context id.
        """
        super().reset(seed=seed)
        options = dict(check_options(options, ("task_id", "context_id")))
        opened = self.parts.open([self.np_random], [options.get("task_id")], [options.get("context_id")])[0]
        self._over, self._printed = False, 0
        return self._arrive(opened)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Say ``action`` to the user.

        Returns:
            Observation, reward, terminated, truncated and ``info``; see ``duologue.envs.dynamics`` for each case.

        Raises:
            DuologueError: before the first reset, after the end, or if the action is no string.
        """
        if self._now is None or self._over:
            raise DuologueError("There is no dialogue to continue. Call reset() first.")
        if self._now.dialogue.stop is None:
            self._now = self.parts.dynamics.reply([self._now.dialogue], [action])[0]
        now = self._now
        self._over = now.dialogue.stop is not None
        observation, info = self._arrive(now)
        return observation, now.reward, now.terminated, now.truncated, info

    def render(self) -> str | None:
        """Return the transcript in mode "ansi"; in mode "human" print what was not printed yet."""
        if self.render_mode == "ansi":
            return transcript(self._now.dialogue) if self._now else ""
        self._print_new()
        return None

    def _arrive(self, transition: Transition) -> tuple[str, dict[str, Any]]:
        self._now = transition
        self._print_new()
        return transition.observation, info_of(transition)

    def _print_new(self) -> None:
        """Print the messages that were not printed yet; a person who plays the user has seen them all already."""
        if isinstance(self.parts.dynamics.simulator, HumanUser):
            return
        if self.render_mode == "human" and self._now is not None:
            print_messages(self._now.dialogue.messages[self._printed :])
            self._printed = len(self._now.dialogue.messages)
