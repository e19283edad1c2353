"""What the trainer adds to a forward and a backward pass: tokens per second in a training step without its rollout."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import TrainerCallback

from benchmarks.rollout_speed import LIMITS, MAX_TURNS
from benchmarks.timing import Comparison, speed
from duologue.engines import LoadedModel
from duologue.trainers import InteractiveConfig, InteractiveTrainer, Rollout, Start
from duologue.trainers.progress import ProgressLine
from duologue.types import Episode

GROUPS, GROUP_SIZE, MICRO_BATCH = 2, 4, 4


class PlayOnce:
    """Plays real dialogues once and returns them at every step, so that a step costs nothing but its training."""

    def __init__(self, rollout: Rollout) -> None:
        self.rollout = rollout
        self.episodes: list[Episode] = []

    def play(self, starts: Sequence[Start]) -> list[Episode]:
        """Return the episodes with rewards 0, 1, 0, 1, …: groups that differ, so that no dialogue is left out."""
        if not self.episodes:
            played = self.rollout.play(starts)
            self.episodes = [replace(episode, reward=float(i % 2)) for i, episode in enumerate(played)]
        return self.episodes


class Alternate(TrainerCallback):
    """Times every step, and after each a bare pass over the same tokens. The first of both is a warm-up."""

    def __init__(self) -> None:
        self.played: PlayOnce | None = None
        self.ours: list[float] = []
        self.bare: list[float] = []
        self._start = 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start the clock."""
        self._start = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Stop the clock; then time the bare pass, over the same tokens with the same adapters."""
        seconds = time.perf_counter() - self._start
        assert self.played is not None
        episodes = self.played.episodes
        self.ours.append(count_tokens(episodes) / seconds)
        self.bare.append(speed(lambda: bare_pass(model, episodes)))
        model.zero_grad()


def measure(loaded: LoadedModel, repetitions: int) -> list[Comparison]:
    """Compare the training part of ``InteractiveTrainer``'s steps with bare passes in between."""
    clock = Alternate()
    with TemporaryDirectory() as folder:
        trainer = InteractiveTrainer(_config(folder, repetitions + 1), loaded=loaded, callbacks=[clock])
        trainer.trainer.remove_callback(ProgressLine)
        clock.played = PlayOnce(trainer.rollout)
        trainer.rollout = clock.played  # type: ignore[assignment]
        trainer.train()
    baseline = "loss.backward() row by row, no padding"
    name = f"Training step over {GROUPS * GROUP_SIZE} dialogues"
    return [Comparison(name, "tokens", baseline, tuple(clock.ours[1:]), tuple(clock.bare[1:]))]


def bare_pass(model: Any, episodes: Sequence[Episode]) -> float:
    """Run one forward and backward pass per dialogue with the model's own loss; return the number of tokens."""
    for episode in episodes:
        ids = torch.tensor([[*episode.prompt_ids, *episode.completion_ids]], device=model.device)
        mask = torch.tensor([[0] * len(episode.prompt_ids) + list(episode.completion_mask)], device=model.device)
        model(input_ids=ids, labels=ids.masked_fill(mask == 0, -100), use_cache=False).loss.backward()
    return count_tokens(episodes)


def count_tokens(episodes: Sequence[Episode]) -> int:
    """Return the tokens of all dialogues, of both speakers and the prompts."""
    return sum(len(e.prompt_ids) + len(e.completion_ids) for e in episodes)


def _config(folder: str, steps: int) -> InteractiveConfig:
    return InteractiveConfig(
        output=folder,
        steps=steps,
        max_turns=MAX_TURNS,
        groups_per_step=GROUPS,
        group_size=GROUP_SIZE,
        micro_batch_size=MICRO_BATCH,
        max_tokens_per_turn=LIMITS.max_tokens_per_turn,
        max_total_tokens=LIMITS.max_total_tokens,
    )
