"""The thin subclass of TRL's ``GRPOTrainer`` (1.16): dialogues instead of completions, everything else TRL's.

Private methods of TRL are overridden, because its public hooks cannot carry a dialogue: ``rollout_func`` sees no
dataset columns and its rewards read the whole dialogue as one assistant message. A contract test watches them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers.trainer_utils import rotate_checkpoints
from trl import GRPOTrainer

from duologue.errors import DuologueError
from duologue.trainers.batches import micro_batches
from duologue.trainers.correction import truncated_ratio
from duologue.trainers.metrics import dialogue_metrics, flat_groups
from duologue.trainers.policy_head import can_gather, gathered, labelled
from duologue.trainers.run_folder import written_aside
from duologue.types import Episode

Play = Callable[[Sequence[dict[str, Any]], int, bool], list[Episode]]
"""(this process's dataset rows in batch order, optimiser step, training?) -> one episode per row of every process, in
order of processes. All processes call it at the same time."""


@dataclass(frozen=True, slots=True)
class DialogueOptions:
    """What the subclass needs beyond ``GRPOConfig``."""

    play: Play
    pad_completion_id: int
    """A token for rows that have no completion at all (the episode failed before the first reply); never trained."""
    drop_flat_groups: bool
    max_empty_steps: int
    logprob_tolerance: float
    """Largest mean |recomputed - sampled| log-probability in nats: of the first batch, with ``ratio_cap`` of each."""
    ratio_cap: float | None = None
    """Weigh each token by min(exp(recomputed - sampled), cap), as where a server samples; None = do not."""


class DialogueGRPOTrainer(GRPOTrainer):  # type: ignore[misc]
    """GRPO over whole dialogues.

    Loss mask and attention mask stay different tensors: what the user said is read but not trained on. Episodes that
    are not scored carry no loss and stay out of their group's statistics (TRL's own handling of a reward of None).
    """

    def __init__(self, options: DialogueOptions, *args: Any, **trl_arguments: Any) -> None:
        self.options = options
        self._rows: list[dict[str, Any]] = []
        self._rewards: list[float | None] = []  # of all processes
        self._empty_steps = 0
        self._checked = False
        self._aside: Path | None = None
        self._trained: torch.Tensor | None = None
        self._micro_batches: list[dict[str, torch.Tensor]] = []
        super().__init__(*args, reward_funcs=[episode_reward], **trl_arguments)

    def _prepare_inputs(self, generation_batch: list[dict[str, Any]]) -> dict[str, Any]:
        every = self.args.steps_per_generation * self.num_iterations
        one_step_a_generation = self.args.steps_per_generation == self.args.gradient_accumulation_steps
        if not self.model.training or not one_step_a_generation or self._order_matters:
            return dict(super()._prepare_inputs(generation_batch))
        if self._step % every == 0 or not self._micro_batches:
            scored = self._generate_and_score_completions(generation_batch)
            # TRL gathers a number per row, so that all processes must have as many rows.
            alone = self.accelerator.num_processes == 1
            skip = alone and self.loss_type in ("dapo", "cispo") and self.beta == 0.0
            self._micro_batches = micro_batches(scored, self.args.steps_per_generation, skip_idle=skip)
        return self._micro_batches[int(self._step) % int(self.args.steps_per_generation)]

    @property
    def _order_matters(self) -> bool:
        """True if the loss has a term that is normalised within each micro-batch, so that its rows must be random."""
        within = self.loss_type == "bnpo" or self.top_entropy_quantile < 1.0
        return bool(within or self._entropy_bonus_enabled or self.aux_loss_enabled)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        self._rows = inputs
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        self._flatten(output)
        self._check_sampling(output)
        self._correct(output)
        output.pop("sampling_per_token_logps", None)
        return output

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        self._trained = inputs["completion_mask"] * inputs["tool_mask"]
        try:
            loss: torch.Tensor = super()._compute_loss(model, inputs)
        finally:
            self._trained = None
        return loss

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: torch.Tensor, attention_mask: torch.Tensor, logits_to_keep: int, **options: Any
    ) -> tuple[Any, Any, Any]:
        trained, needs_more = self._trained, self.aux_loss_enabled or not options.get("compute_entropy")
        if trained is None or needs_more:
            batch = (model, input_ids, attention_mask, logits_to_keep)
            scores: tuple[Any, Any, Any] = super()._get_per_token_logps_and_entropies(*batch, **options)
            return scores
        if can_gather(model) and self.accelerator.num_processes == 1:
            return (*gathered(model, input_ids, attention_mask, trained, self.temperature), None)
        with self.accelerator.autocast():
            return (*labelled(model, input_ids, attention_mask, trained), None)

    def _generate(self, prompts: list[Any]) -> tuple[Any, ...]:
        mode = "train" if self.model.training else "eval"
        episodes = self.options.play(self._rows, self.state.global_step, mode == "train")
        rows = len(prompts) * self.accelerator.num_processes
        if len(episodes) != rows:
            raise RuntimeError(f"{len(episodes)} episodes for {rows} rows; groups would be mixed up.")
        self._count(episodes, mode)
        self._rewards = [e.reward for e in episodes]
        episodes = self._own(episodes)
        pad = self.options.pad_completion_id
        return (
            [list(e.prompt_ids) or [pad] for e in episodes],
            [list(e.completion_ids) or [pad] for e in episodes],
            [trained_mask(e) or [0] for e in episodes],
            [[dict(m) for m in e.messages[max(1, e.given) :]] for e in episodes],
            [list(e.logprobs) or [0.0] for e in episodes],
            {"episode_reward": [e.reward for e in episodes]},
            None,
            [],
        )

    def _get_output_dir(self, trial: Any) -> str:
        return str(self._aside or super()._get_output_dir(trial))

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Write a checkpoint aside and move it when it is whole, so that no half one is ever found."""
        if self.args.push_to_hub:  # an upload that goes on in the background reads what is written here
            super()._save_checkpoint(model, trial)
            return
        folder = Path(super()._get_output_dir(trial))
        with written_aside(folder, f"checkpoint-{self.state.global_step}", self.accelerator) as aside:
            self._aside = aside.parent
            try:
                super()._save_checkpoint(model, trial)
            finally:
                self._aside = None
        if self.args.should_save:
            best, limit = self.state.best_model_checkpoint, self.args.save_total_limit
            rotate_checkpoints(str(folder), save_total_limit=limit, best_model_checkpoint=best, use_mtime=True)

    def _own(self, everything: Any) -> Any:
        """Return this process's share of what is in order of processes."""
        each = len(everything) // self.accelerator.num_processes
        return everything[self.accelerator.process_index * each :][:each]

    def _count(self, episodes: Sequence[Episode], mode: str) -> None:
        size = self.num_generations if mode == "train" else self.num_generations_eval
        for name, value in dialogue_metrics(episodes, size).items():
            self._metrics[mode][name].append(value)
        if mode == "train":
            self.state.num_input_tokens_seen += sum(len(e.prompt_ids) + len(e.completion_ids) for e in episodes)
            self._metrics[mode]["num_tokens"] = [self.state.num_input_tokens_seen]
            self._watch_empty(sum(sum(trained_mask(e)) for e in episodes))

    def _watch_empty(self, trained_tokens: int) -> None:
        self._empty_steps = 0 if trained_tokens else self._empty_steps + 1
        if self._empty_steps >= self.options.max_empty_steps:
            raise DuologueError(
                f"{self._empty_steps} steps in a row had no token to train on. Look at stop_reason and error in "
                "episodes.jsonl; usually the simulator fails or the opening alone exceeds max_total_tokens."
            )

    def _flatten(self, output: dict[str, Any]) -> None:
        """Give groups without differences the advantage 0 that rounding can deny them; drop them if that is wanted."""
        if not self.model.training:
            return
        flat = torch.tensor(flat_groups(self._rewards, self.num_generations)).repeat_interleave(self.num_generations)
        flat = self._own(flat).to(output["advantages"].device)
        output["advantages"] = output["advantages"].masked_fill(flat, 0.0)
        if self.options.drop_flat_groups:
            output["tool_mask"] = output["tool_mask"] * (~flat).unsqueeze(1)
            trained = (output["completion_mask"] * output["tool_mask"]).sum()
            output["num_items_in_batch"] = self.accelerator.gather(trained).sum().clamp(min=1)

    def _check_sampling(self, output: dict[str, Any]) -> None:
        """Compare, once, the log-probabilities of sampling with those that training recomputes."""
        if self._checked or not self.model.training or self.options.ratio_cap is not None:
            return
        mask = (output["completion_mask"] * output["tool_mask"]).bool()
        self._checked = bool(self.accelerator.gather(mask.sum()).any())
        if self._checked:
            self._compare((self._recomputed(output) - output["sampling_per_token_logps"])[mask])

    def _compare(self, difference: torch.Tensor) -> None:
        """Log the mean size of differences of log-probabilities, (N,) over all processes.

        Raises:
            DuologueError: if it is beyond the tolerance, or not a number.
        """
        own = torch.stack([difference.abs().sum(), difference.new_tensor(float(difference.numel()))])
        total, count = self.accelerator.gather(own).view(-1, 2).sum(0)
        mean = float(total / count.clamp(min=1))
        self._metrics["train"]["sampling/logp_difference"].append(mean)
        if not mean <= self.options.logprob_tolerance:  # nor is a NaN
            raise DuologueError(
                f"Sampled and recomputed log-probabilities differ by {mean:.3g} nats per token, so training would not "
                "see what was sampled. Check that engine and trainer share weights, temperature and dropout 0."
            )

    def _correct(self, output: dict[str, Any]) -> None:
        """Make advantages (B, T), each weighed by how much likelier its token is to training than to sampling."""
        if self.options.ratio_cap is None or not self.model.training:
            return
        mask = output["completion_mask"] * output["tool_mask"]
        old = output.get("old_per_token_logps")
        old = self._recomputed(output) if old is None else old
        sampled = output["sampling_per_token_logps"]
        self._compare((old - sampled)[mask.bool()])
        ratio = truncated_ratio(old, sampled, mask, self.options.ratio_cap)
        output["advantages"] = output["advantages"].unsqueeze(1) * ratio
        capped = ((ratio >= self.options.ratio_cap) * mask).sum() / mask.sum().clamp(min=1)
        self._metrics["train"]["sampling/ratio_capped"].append(float(capped))

    @torch.no_grad()
    def _recomputed(self, output: dict[str, Any]) -> torch.Tensor:
        ids = torch.cat([output["prompt_ids"], output["completion_ids"]], dim=1)
        mask = torch.cat([output["prompt_mask"], output["completion_mask"]], dim=1)
        width = output["completion_ids"].size(1)
        logps, _, _ = self._get_per_token_logps_and_entropies(
            self.model, ids, mask, width, batch_size=self.args.per_device_train_batch_size
        )
        return torch.as_tensor(logps)


def episode_reward(episode_reward: list[float | None], completions: Any, **_: Any) -> list[float | None]:
    """Pass on the environment's rewards; TRL wants a function and fills its other arguments by keyword."""
    return episode_reward


def trained_mask(episode: Episode) -> list[int]:
    """Return the loss mask of an episode: what the policy sampled, or nothing if the episode is not scored."""
    return list(episode.completion_mask) if episode.reward is not None else [0] * len(episode.completion_mask)
