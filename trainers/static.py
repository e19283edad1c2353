"""Static-context GRPO: the policy replies to histories that it did not make (the baseline of arXiv:2605.26403).

Everything but the history is as in interactive training: rows, reward, configuration, logs, resume, evaluation. The
source names the objective no further, so these are choices: GRPO on the one new reply, a group being one logged
context, and the environment's reward for that reply alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
from transformers import TrainerCallback

from duologue.engines.models import LoadedModel
from duologue.envs.contexts import LoggedContexts
from duologue.errors import DuologueError
from duologue.simulators.logs import check_disjoint, read_logs
from duologue.trainers.agents import TokenAgent
from duologue.trainers.conversation import Conversation
from duologue.trainers.dpo_config import DpoConfig
from duologue.trainers.interactive import InteractiveTrainer, env_maker
from duologue.trainers.static_config import StaticConfig

__all__ = ["StaticConfig", "StaticTrainer", "check_room", "read_contexts"]

MakeContextEnv = Callable[[int, LoggedContexts], gym.vector.VectorEnv[Any, Any, Any]]
"""Makes a native vector environment with so many slots, whose episodes begin with these contexts."""


class StaticTrainer(InteractiveTrainer):
    """Trains a policy on logged contexts.

    Example:
        >>> config = StaticConfig(env="MathChat-v0", dialogues="logs.jsonl", steps=10)
        >>> StaticTrainer(config).train()  # doctest: +SKIP
    """

    def __init__(
        self,
        config: StaticConfig,
        *,
        make_env: MakeContextEnv | None = None,
        loaded: LoadedModel | None = None,
        callbacks: Sequence[TrainerCallback] = (),
    ) -> None:
        """Read the logs, then load model and environment; the arguments are those of ``InteractiveTrainer``.

        Raises:
            DuologueError: as ``InteractiveTrainer`` does, or if logs cannot be used, share something with those held
                out, or are too long for the token limits.
        """
        self.contexts = contexts = read_contexts(config)
        self.data = contexts.signature
        make = (lambda slots: make_env(slots, contexts)) if make_env else env_maker(config, contexts)
        super().__init__(config, make_env=make, loaded=loaded, callbacks=callbacks)
        check_room(contexts, self.agent)


def check_room(contexts: LoggedContexts, agent: TokenAgent) -> None:
    """Refuse histories after which there is no room for a reply: they would be scored without one.

    Raises:
        DuologueError: if there are some; the message names one.
    """
    longest = list(LoggedContexts(contexts.dialogues, "final"))
    tight = [c.context_id for c in longest if agent.overflow(Conversation(c.messages))]
    if tight:
        raise DuologueError(
            f"{len(tight)} of {len(longest)} logged dialogues leave no room for a reply of "
            f"{agent.limits.max_tokens_per_turn} tokens, such as {tight[0]}. Raise max_total_tokens as far as the "
            "model's window goes, lower max_tokens_per_turn, or leave these dialogues out."
        )


def read_contexts(config: StaticConfig | DpoConfig) -> LoggedContexts:
    """Return the contexts that a configuration names.

    Raises:
        DuologueError: if a file cannot be used, or training and held-out dialogues share something.
    """
    dialogues = read_logs(str(config.dialogues))
    if config.held_out is not None:
        check_disjoint(dialogues, read_logs(config.held_out))
    return LoggedContexts(dialogues, config.turns)
