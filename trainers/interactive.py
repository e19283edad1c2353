"""Interactive GRPO: the policy learns from its own dialogues with a simulated user (Stage 2 of arXiv:2605.26403).

Whole dialogues, the environment's terminal reward, advantages at the level of the trajectory. What the paper leaves
open (horizon, group size, rates, KL) are fields of ``InteractiveConfig``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import gymnasium as gym
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback

import duologue.envs  # noqa: F401  (registers the environments)
from duologue.disk import explained_full_disk
from duologue.engines.base import Engine
from duologue.engines.chat import ChatFormat
from duologue.engines.hf import TransformersEngine
from duologue.engines.models import LoadedModel, load_model
from duologue.engines.spec import make_engine
from duologue.envs.contexts import LoggedContexts
from duologue.envs.making import named_errors
from duologue.errors import DuologueError
from duologue.trainers.adapters import lora_config
from duologue.trainers.agents import Limits, TokenAgent, hash_seed
from duologue.trainers.config import InteractiveConfig
from duologue.trainers.episode_log import EpisodeLog
from duologue.trainers.grpo import DialogueGRPOTrainer, DialogueOptions
from duologue.trainers.processes import (
    check_processes,
    first_alone,
    launched_processes,
    local_device,
    process_index,
    together,
)
from duologue.trainers.progress import MetricsLog, ProgressLine, quiet_console
from duologue.trainers.rollout import Rollout, Start
from duologue.trainers.run_folder import claim, how_to_go_on, step_of, written_aside
from duologue.trainers.served import ByDisk, ByNetwork, ServedPolicy
from duologue.trainers.sharding import check_sharding, sharded, whole_state, whole_weights
from duologue.trainers.trl_config import grpo_config
from duologue.trainers.trl_vllm import TRLvLLM
from duologue.types import Episode

MakeEnv = Callable[[int], gym.vector.VectorEnv[Any, Any, Any]]
"""Makes a native vector environment with so many slots."""

RATIO_CAP = 2.0
"""Most that a token counts whose probability a server or vLLM took for smaller than training does."""


class InteractiveTrainer:
    """Trains a policy in any dialogue environment.

    Example:
        >>> config = InteractiveConfig(env="MathChat-v0", simulator="scripted", steps=10)
        >>> InteractiveTrainer(config).train()  # doctest: +SKIP
    """

    data: str | None = None
    """Hash of the data that a run learns from, where files are such data; resuming with others is refused."""

    def __init__(
        self,
        config: InteractiveConfig,
        *,
        make_env: MakeEnv | None = None,
        loaded: LoadedModel | None = None,
        callbacks: Sequence[TrainerCallback] = (),
    ) -> None:
        """Load model and environment.

        Args:
            config: everything that is not an object.
            make_env: makes the environment; the default follows the configuration.
            loaded: a model in memory; the default loads ``config.model``.
            callbacks: further callbacks for TRL's trainer.

        Raises:
            DuologueError: if model, chat template, environment, simulator or tasks cannot work.
        """
        self.config = config
        self.loaded = loaded or load_model(config.model, dtype=config.dtype, device=local_device(not sharded()))
        self.chat = ChatFormat(self.loaded.tokenizer, config.system_prompt)
        self.output = Path(config.output)
        self.episodes = EpisodeLog(self.output / "episodes.jsonl")
        self.metrics = MetricsLog(self.output / "metrics.jsonl")
        with quiet_console():
            self.trainer = self._trainer([*callbacks, self.metrics, ProgressLine(config.steps)])
            self.trainer.remove_callback(PrinterCallback)
        # After the trainer: a user on the policy's base can share it only once adapters have frozen it.
        self.env = (make_env or env_maker(config))(config.episodes_per_step // launched_processes())
        self.agent = self._agent()
        self.rollout = Rollout(self.env, self.agent)

    def train(self) -> Path:
        """Train, or go on from the last checkpoint in the output folder, and save the policy.

        However it ends, a server that sampled is left without the policy's adapter.

        Returns:
            The folder of the trained policy, which ``load_model`` and ``duologue evaluate --agent`` take.

        Raises:
            DuologueError: if the output folder holds another run, if no token could be trained on for
                ``max_empty_steps`` steps, or if sampling and training disagree about log-probabilities.
            DiskFullError: if there is no room for a file; the message says from which step the next call goes on.
        """
        try:
            return self._train()
        finally:
            if isinstance(self.agent.engine, ServedPolicy):
                self.agent.engine.release()

    def _train(self) -> Path:
        with explained_full_disk(self.output, lambda: how_to_go_on(self.config)):
            checkpoint = first_alone(self._begin)
            with quiet_console():
                self.trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
            with written_aside(self.output, "final", self.trainer.accelerator) as final:
                self.trainer.save_model(str(final))
                first_alone(lambda: self.loaded.tokenizer.save_pretrained(str(final)))
        return self.output / "final"

    def _begin(self) -> Path | None:
        checkpoint = claim(self.config, self.data)
        done = step_of(checkpoint) if checkpoint else 0
        self.episodes.keep(lambda row: row["step"] < done)
        self.metrics.keep(lambda row: row["step"] <= done)
        return checkpoint

    def play(self, rows: Sequence[dict[str, Any]], step: int, training: bool) -> list[Episode]:
        """Play one dialogue per dataset row with the weights of optimiser step ``step``.

        Args:
            rows: this process's; other processes call at the same time with as many of their own.
            step: optimiser step.
            training: False in evaluation.

        Returns:
            The episodes of all processes, in order of processes: the order in which one process would play them.

        Raises:
            DuologueError: on every process if one fails.
        """
        self.agent.engine.version = step  # type: ignore[attr-defined]
        self._check_groups([seed for part in together(lambda: [row["seed"] for row in rows]) for seed in part])
        before = process_index() * len(rows)
        seeds = [hash_seed("training agent", self.config.seed, step, before + i) for i in range(len(rows))]
        starts = [Start(row["seed"], seed) for row, seed in zip(rows, seeds, strict=True)]
        here = isinstance(self.agent.engine, TransformersEngine)
        with whole_weights(self.trainer) if here else nullcontext():
            parts = together(lambda: self._played(starts))
        episodes = [episode for part in parts for episode in part]
        first_alone(lambda: self.episodes.write(episodes, step))
        return episodes

    def _played(self, starts: Sequence[Start]) -> list[Episode]:
        try:
            return self.rollout.play(starts)
        finally:
            if isinstance(self.agent.engine, TRLvLLM):
                self.agent.engine.leave()

    def _check_groups(self, seeds: Sequence[int]) -> None:
        size = self.config.group_size
        groups = [set(seeds[i : i + size]) for i in range(0, len(seeds), size)]
        if any(len(group) != 1 for group in groups):
            raise RuntimeError("Rows of a group do not share their seed; TRL's sampler has changed its order.")

    def _agent(self) -> TokenAgent:
        config = self.config
        limits = Limits(config.max_tokens_per_turn, config.max_total_tokens)
        return TokenAgent(self._engine(), self.chat, limits, temperature=config.temperature, name=self.loaded.signature)

    def _engine(self) -> Engine:
        """Return who samples: vLLM if TRL was told to use it, a server, or this process."""
        if self.trainer.use_vllm:
            return TRLvLLM(self.trainer)
        if self.config.engine:
            return self._served(self.config.engine)
        model = self.trainer.accelerator.unwrap_model(self.trainer.model)
        return TransformersEngine(model, self.loaded.tokenizer.pad_token_id)

    def _served(self, address: str) -> ServedPolicy:
        def save(folder: Path) -> None:
            self.trainer.save_model(str(folder), _internal_call=True)  # gathers what is sharded; uploads nothing

        if self.config.weight_sync == "disk":
            return ServedPolicy(make_engine(address), ByDisk(save, self.output / "served"))
        if hasattr(self.trainer.accelerator.unwrap_model(self.trainer.model), "peft_config"):
            raise DuologueError(
                f"weight_sync {self.config.weight_sync} sends all weights, and this policy trains an adapter. Set "
                "lora_rank to 0 with a model without adapter, or sync the adapter from disk."
            )
        return ServedPolicy(make_engine(address), ByNetwork(lambda: whole_state(self.trainer)))

    def _trainer(self, callbacks: Sequence[TrainerCallback]) -> DialogueGRPOTrainer:
        config = self.config
        elsewhere = bool(config.engine or config.trl.get("use_vllm"))
        options = DialogueOptions(
            play=self.play,
            pad_completion_id=self.chat.end_of_turn_id,
            drop_flat_groups=config.drop_flat_groups,
            max_empty_steps=config.max_empty_steps,
            logprob_tolerance=0.01 if self.loaded.signature.endswith("float32") and not elsewhere else 0.1,
            ratio_cap=RATIO_CAP if elsewhere else None,
        )
        fresh_adapter = config.lora_rank > 0 and not hasattr(self.loaded.model, "peft_config")
        trainer = DialogueGRPOTrainer(
            options,
            model=self.loaded.model,
            args=grpo_config(config),
            train_dataset=seed_rows(config),
            processing_class=self.loaded.tokenizer,
            peft_config=lora_config(config, self.loaded.model) if fresh_adapter else None,
            callbacks=list(callbacks),
        )
        check_processes(trainer)
        check_sharding(trainer.accelerator)
        return trainer


def env_maker(config: InteractiveConfig, contexts: LoggedContexts | None = None) -> MakeEnv:
    """Return a maker of the environment that a configuration describes; ``contexts`` as in ``DialogueEnv``."""
    given = {"simulator": config.simulator, "tasks": config.tasks, "max_turns": config.max_turns, "contexts": contexts}
    arguments: dict[str, Any] = {name: value for name, value in given.items() if value is not None}

    def make(slots: int) -> gym.vector.VectorEnv[Any, Any, Any]:
        with named_errors(config.env):
            return gym.make_vec(config.env, num_envs=slots, vectorization_mode="vector_entry_point", **arguments)

    return make


def seed_rows(config: InteractiveConfig) -> Dataset:
    """Return the dataset of a run: one row per group, which is one environment seed (hence one task and one user)."""
    seeds = [hash_seed("training env", config.seed, i) for i in range(config.steps * config.groups_per_step)]
    prompt = [{"role": "user", "content": ""}]  # the real prompt is what the user opens with at rollout time
    return Dataset.from_dict({"prompt": [prompt] * len(seeds), "seed": seeds})
