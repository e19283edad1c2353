"""Dialogues for an unmodified ``trl.GRPOTrainer``, through its public ``rollout_func``.

Made for the reader who has a TRL script already. ``InteractiveTrainer`` does more: it checks log-probabilities, logs
dialogues, gives rewards and logs true transcripts, drops idle rows and resumes. Here TRL decodes the whole dialogue,
user included, as one assistant message: no reward function may read ``completions``.

``rollout_func`` sees prompts and nothing else of the data set, already repeated for the group. So the prompt *is* the
seed: its one message holds a number in digits (``seed_prompts`` makes such rows). The model never sees it; what it is
prompted with is the user's opening. Equal prompts are equal seeds, hence equal tasks and users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
from datasets import Dataset

from duologue.engines.chat import ChatFormat
from duologue.engines.hf import TransformersEngine
from duologue.errors import DuologueError
from duologue.trainers.agents import Limits, TokenAgent, hash_seed
from duologue.trainers.grpo import episode_reward, trained_mask
from duologue.trainers.rollout import Rollout, Start
from duologue.types import Episode

RolloutFunc = Callable[[list[Any], Any], dict[str, Any]]
"""(prompts, trainer) -> what TRL asks of a ``rollout_func``."""

__all__ = ["RolloutFunc", "dialogue_rollout_func", "episode_reward", "seed_prompts"]


def seed_prompts(groups: int, seed: int = 0) -> Dataset:
    """Return a data set for TRL: ``groups`` prompts, each an environment seed in digits.

    Args:
        groups: number of groups, that is ``max_steps`` times the groups of a step.
        seed: seeds them, in the stream of ``InteractiveTrainer``: the same seed is the same tasks and users.
    """
    seeds = [hash_seed("training env", seed, i) for i in range(groups)]
    return Dataset.from_dict({"prompt": [[{"role": "user", "content": str(value)}] for value in seeds]})


def dialogue_rollout_func(env: gym.vector.VectorEnv[Any, Any, Any], chat: ChatFormat, limits: Limits) -> RolloutFunc:
    """Return a ``rollout_func`` that plays one dialogue per prompt with the trainer's own weights.

    Pass ``reward_funcs=episode_reward`` with it. Row i of step t samples with its own seed, drawn from ``args.seed``
    as ``InteractiveTrainer`` does. An episode that could not be scored has reward None and an all-zero mask.

    Args:
        env: a native vector environment with at most as many slots as TRL's generation batch has prompts.
        chat: lays dialogues out as tokens; from the trainer's tokenizer.
        limits: caps on tokens. Set ``max_completion_length`` of ``GRPOConfig`` to ``limits.max_total_tokens``.

    Raises:
        DuologueError: at the first call, if the trainer's configuration does not fit dialogues.
    """

    def rollout_func(prompts: list[Any], trainer: Any) -> dict[str, Any]:
        _check(trainer.args, limits)
        agent = _agent(trainer, chat, limits)
        step = int(trainer.state.global_step)
        starts = [
            Start(_seed_of(prompt), hash_seed("training agent", trainer.args.seed, step, i))
            for i, prompt in enumerate(prompts)
        ]
        return _columns(Rollout(env, agent).play(starts), chat.end_of_turn_id)

    return rollout_func


def _agent(trainer: Any, chat: ChatFormat, limits: Limits) -> TokenAgent:
    model = trainer.accelerator.unwrap_model(trainer.model)
    engine = TransformersEngine(model, trainer.processing_class.pad_token_id)
    engine.version = int(trainer.state.global_step)
    return TokenAgent(engine, chat, limits, temperature=trainer.args.temperature, name="trl")


def _columns(episodes: Sequence[Episode], filler: int) -> dict[str, Any]:
    """Return the rows; TRL refuses an empty completion, so that one that broke at once gets a token without loss."""
    return {
        "prompt_ids": [list(e.prompt_ids) or [filler] for e in episodes],
        "completion_ids": [list(e.completion_ids) or [filler] for e in episodes],
        "logprobs": [list(e.logprobs) or [0.0] for e in episodes],
        "env_mask": [trained_mask(e) or [0] for e in episodes],
        "episode_reward": [e.reward for e in episodes],
        "stop_reason": [e.stop_reason.value for e in episodes],
    }


def _seed_of(prompt: Any) -> int:
    if isinstance(prompt, Sequence) and len(prompt) == 1 and str(prompt[0]["content"]).isdecimal():
        return int(prompt[0]["content"])
    raise DuologueError(f"The prompt {prompt!r:.80} is no seed. Make the data set with seed_prompts(groups, seed).")


def _check(args: Any, limits: Limits) -> None:
    """Refuse what would bias the gradient without a sound."""
    wanted = {"top_p": (1.0,), "top_k": (0, None), "min_p": (None, 0.0), "mask_truncated_completions": (False,)}
    for name, good in wanted.items():
        if getattr(args, name) not in good:
            raise DuologueError(f"{name} is {getattr(args, name)}, which dialogues cannot have. Set it to {good[0]}.")
    if args.max_completion_length != limits.max_total_tokens:
        raise DuologueError(
            f"max_completion_length is {args.max_completion_length}, but dialogues have up to "
            f"{limits.max_total_tokens} tokens. Set it to limits.max_total_tokens."
        )
