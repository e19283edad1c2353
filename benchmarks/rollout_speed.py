"""How much of the engine's speed is left in whole dialogues, and what groups gain: tokens sampled per second."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

import duologue.envs  # noqa: F401  (registers the environments)
from benchmarks.timing import Comparison, compare
from duologue.engines import ChatFormat, Completion, LoadedModel, Sampling, TransformersEngine
from duologue.trainers import Limits, Rollout, Start, TokenAgent
from duologue.types import Episode

DIALOGUES = 16
MAX_TURNS = 3
LIMITS = Limits(max_tokens_per_turn=24, max_total_tokens=1024)
GROUPS, OF, LENGTH = 4, 8, 350
"""Prompts of a call, as a prompted user gets them from GRPO: tasks, dialogues about each, tokens."""


class Dialogues:
    """The same dialogues again and again: what both sides of the comparison are made from."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.loaded = loaded
        self.chat = ChatFormat(loaded.tokenizer)
        self.env: Any = gym.make_vec(
            "MathChat-v0", num_envs=DIALOGUES, vectorization_mode="vector_entry_point", max_turns=MAX_TURNS
        )
        self.prompts = [_middle_prompt(episode) for episode in self.play()]

    def play(self) -> list[Episode]:
        """Play every dialogue to its end with an engine that has not seen them."""
        agent = TokenAgent(self.fresh_engine(), self.chat, LIMITS)
        return Rollout(self.env, agent).play([Start(seed, agent_seed=seed) for seed in range(DIALOGUES)])

    def single_turns(self) -> list[Completion]:
        """Sample one turn for every dialogue, from a prompt of middling length, in one call."""
        sampling = Sampling(LIMITS.max_tokens_per_turn)
        return self.fresh_engine().generate(self.prompts, sampling, self.chat.stop_ids, range(DIALOGUES))

    def fresh_engine(self) -> TransformersEngine:
        """Return an engine without cached prefixes."""
        return TransformersEngine(self.loaded.model, self.loaded.tokenizer.pad_token_id)


def measure(loaded: LoadedModel, repetitions: int) -> list[Comparison]:
    """Compare rollouts with single-turn generation by the same engine at the same batch size."""
    dialogues = Dialogues(loaded)

    def ours() -> float:
        return sum(sum(episode.completion_mask) for episode in dialogues.play())

    def bare() -> float:
        return sum(len(completion.token_ids) for completion in dialogues.single_turns())

    name = f"Rollout of {DIALOGUES} dialogues"
    return [
        compare(name, "sampled tokens", "one turn each, same batch", (ours, bare), repetitions),
        _groups(dialogues, repetitions),
    ]


def _groups(dialogues: Dialogues, repetitions: int) -> Comparison:
    """Compare a call whose prompts come in groups, as those of GRPO do, with one of as many different prompts."""
    size = (GROUPS * OF, LENGTH)
    rows = np.random.default_rng(0).integers(0, len(dialogues.loaded.tokenizer), size=size).tolist()

    def sampled(prompts: list[list[int]]) -> float:
        sampling = Sampling(LIMITS.max_tokens_per_turn)
        done = dialogues.fresh_engine().generate(prompts, sampling, [], range(len(prompts)))
        return sum(len(completion.token_ids) for completion in done)

    works = (lambda: sampled(rows[:GROUPS] * OF), lambda: sampled(rows))
    return compare(f"{GROUPS} prompts, {OF} rows each", "sampled tokens", "as many, all different", works, repetitions)


def _middle_prompt(episode: Episode) -> list[int]:
    """Return what the policy read before its middle turn."""
    span = episode.spans[len(episode.spans) // 2]
    return [*episode.prompt_ids, *episode.completion_ids[: span.start]]
