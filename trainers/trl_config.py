"""From our configuration of GRPO to TRL's, and which of TRL's own fields dialogues can have."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from trl import GRPOConfig

from duologue.errors import DuologueError, did_you_mean
from duologue.trainers.config import InteractiveConfig
from duologue.trainers.processes import launched_processes


def everywhere() -> dict[str, Any]:
    """Return the arguments that all of TRL's trainers get: weights keep their type, and nothing prints but us."""
    import torch

    on_cpu = not torch.accelerator.is_available()
    return {
        "bf16": False,
        "use_cpu": on_cpu,
        "gradient_checkpointing": not on_cpu,
        "dataloader_pin_memory": not on_cpu,
        "logging_steps": 1,
        "disable_tqdm": True,
    }


def grpo_config(config: InteractiveConfig) -> GRPOConfig:
    """Translate to TRL's configuration; ``config.trl`` has the last word.

    Raises:
        DuologueError: if ``config.trl`` has a field that TRL does not know or that would contradict ours, or if TRL
            refuses a value.
    """
    _check_trl_fields(config)
    processes = launched_processes()
    _check_division(config, processes)
    arguments: dict[str, Any] = {
        "output_dir": config.output,
        "max_steps": config.steps,
        "per_device_train_batch_size": config.micro_batch_size,
        "gradient_accumulation_steps": config.episodes_per_step // (config.micro_batch_size * processes),
        "num_generations": config.group_size,
        "max_completion_length": config.max_total_tokens,
        "learning_rate": config.learning_rate,
        "lr_scheduler_type": "constant_with_warmup",
        "warmup_steps": config.warmup_steps,
        "beta": config.beta,
        "loss_type": config.loss_type,
        "scale_rewards": "group" if config.scale_rewards else "none",
        "temperature": config.temperature,
        "max_grad_norm": config.max_grad_norm,
        "seed": config.seed,
        "shuffle_dataset": False,
        "ddp_find_unused_parameters": False,
        "save_strategy": "steps" if config.save_steps else "no",
        "save_steps": config.save_steps or config.steps,
        "report_to": config.report_to,
        "vllm_importance_sampling_correction": False,  # ours weighs token by token, whoever samples
        "vllm_max_model_length": config.max_total_tokens,
    }
    try:
        return GRPOConfig(**{**everywhere(), **arguments, **config.trl})
    except (TypeError, ValueError) as error:
        raise DuologueError(f"TRL refuses the configuration: {error} Change the field that it names.") from error


_OURS = {
    "output_dir": "output",
    "max_steps": "steps",
    "num_generations": "group_size",
    "per_device_train_batch_size": "micro_batch_size",
    "gradient_accumulation_steps": "groups_per_step",
    "temperature": "temperature",
    "seed": "seed",
}
"""Fields of TRL that the rollout or the dataset takes from our field."""


_RATIO = "it would bias the ratio of probabilities that training rests on"
_REFUSED = {
    "vllm_enable_sleep_mode": "it would put vLLM to sleep and push all weights anew at every turn",
    "vllm_importance_sampling_correction": "tokens are weighed one by one by a truncated ratio already",
    "vllm_structured_outputs_regex": _RATIO,
    "use_transformers_continuous_batching": "dialogues are sampled by our own engine, which batches by itself",
    "generation_kwargs": "stop tokens, seeds and lengths are those of dialogues",
    "top_p": _RATIO,
    "top_k": _RATIO,
    "min_p": _RATIO,
    "repetition_penalty": _RATIO,
}
"""Fields of TRL that would change how dialogues are sampled, with the reason why they cannot."""


def _check_division(config: InteractiveConfig, processes: int) -> None:
    each = config.micro_batch_size * processes
    if config.episodes_per_step % each:
        raise DuologueError(
            f"{processes} processes with a micro_batch_size of {config.micro_batch_size} take {each} dialogues at a "
            f"time, which does not divide the {config.episodes_per_step} of a step. Change micro_batch_size, "
            "groups_per_step, group_size or the number of processes."
        )


def _check_trl_fields(config: InteractiveConfig) -> None:
    known, given = {f.name: f.default for f in fields(GRPOConfig)}, config.trl
    for name, value in given.items():
        if name not in known:
            hint = did_you_mean(name, known)
            close = hint if hint.startswith("Did") else "See the fields of trl.GRPOConfig."
            raise DuologueError(f"trl has no field {name!r}. {close}")
        if name in _OURS:
            raise DuologueError(f"trl.{name} is set by {_OURS[name]}. Set that instead.")
        if (
            name in _REFUSED and (value or name == "top_p") and (value is True or value != known[name])
        ):  # 0 = off elsewhere
            raise DuologueError(f"trl.{name} is not for dialogues: {_REFUSED[name]}. Leave it out.")
    if config.engine and given.get("use_vllm"):
        raise DuologueError("engine and trl.use_vllm each name who samples. Leave one out.")
