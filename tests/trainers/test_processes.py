"""Processes seen from one process: what is divided, what refused, and that nothing is lost."""

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate import FullyShardedDataParallelPlugin, PartialState

from duologue.errors import DuologueError
from duologue.trainers.config import InteractiveConfig
from duologue.trainers.processes import (
    check_processes,
    first_alone,
    launched_processes,
    local_device,
    process_index,
    refuse_processes,
    together,
)
from duologue.trainers.progress import quiet_console
from duologue.trainers.sharding import check_sharding, sharded, whole_weights
from duologue.trainers.trl_config import grpo_config as noisy_config

Settings = Callable[..., InteractiveConfig]


@pytest.fixture(autouse=True)
def on_cpu() -> None:
    PartialState(cpu=True)


def grpo_config(config: InteractiveConfig) -> Any:
    with quiet_console():
        return noisy_config(config)


def test_one_process_does_its_work_and_nothing_else() -> None:
    assert (launched_processes(), process_index(), local_device()) == (1, 0, None)
    lock = threading.Lock()  # cannot be sent anywhere
    assert together(lambda: lock) == [lock]
    assert first_alone(lambda: 7) == 7
    refuse_processes("Calibration", "Do not.")


def test_its_errors_stay_what_they_are() -> None:
    def fails() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        together(fails)


@pytest.mark.parametrize(
    ("said", "message"),
    [("No users. Add some.", "Process 1 failed: No users. Add some."), (None, None)],
)
def test_what_another_process_says_is_raised_here(
    monkeypatch: pytest.MonkeyPatch, said: str | None, message: str | None
) -> None:
    monkeypatch.setattr("accelerate.utils.gather_object", lambda mine: [*mine, ("theirs", said)])
    if message is None:
        assert together(lambda: "mine") == ["mine", "theirs"]
        assert first_alone(lambda: "mine") == "mine"
    else:
        with pytest.raises(DuologueError, match=message):
            together(lambda: "mine")


def test_a_failure_is_told_before_it_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def gather(mine: list[Any]) -> list[Any]:
        told.extend(mine)
        return mine

    monkeypatch.setattr("accelerate.utils.gather_object", gather)

    def fails() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        together(fails)
    assert told == [(None, "ValueError('broken'). Its own output says where. Mend that and run again.")]


@pytest.mark.parametrize("name", ["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"])
def test_the_number_of_processes_is_the_launchers(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "2")
    assert launched_processes() == 2


def test_a_step_that_does_not_divide_is_refused(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(DuologueError, match=r"3 processes .* take 12 .* the 8 of a step.* number of processes\.$"):
        grpo_config(settings())


@pytest.mark.parametrize(
    ("processes", "gpus", "message"),
    [(1, 0, None), (1, 1, None), (2, 1, "1 processes were launched, but 2 are connected"), (1, 4, "sees 4 GPUs")],
)
def test_processes_that_would_not_learn_together_are_refused(processes: int, gpus: int, message: str | None) -> None:
    trainer = SimpleNamespace(accelerator=SimpleNamespace(num_processes=processes), args=SimpleNamespace(n_gpu=gpus))
    if message is None:
        check_processes(trainer)
    else:
        with pytest.raises(DuologueError, match=message):
            check_processes(trainer)


def test_what_needs_one_process_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(DuologueError, match=r"^Calibration runs in one process, but 2 were launched\. Do not\.$"):
        refuse_processes("Calibration", "Do not.")


@pytest.mark.parametrize("name", ["vllm_enable_sleep_mode", "use_transformers_continuous_batching"])
def test_other_engines_are_refused_with_the_reason(settings: Settings, name: str) -> None:
    with pytest.raises(DuologueError, match=rf"^trl\.{name} is not for dialogues: .*\. Leave it out\.$"):
        grpo_config(settings(trl={name: True}))
    grpo_config(settings(trl={name: False}))


@pytest.mark.parametrize(("name", "value", "found"), [("FSDP", "true", True), ("DEEPSPEED", "false", False)])
def test_sharding_is_what_the_launcher_asks_for(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, found: bool
) -> None:
    assert not sharded()
    monkeypatch.setenv(f"ACCELERATE_USE_{name}", value)
    assert sharded() is found


def test_what_shards_for_good_is_refused() -> None:
    def fsdp(version: int, kept: str = "FULL_STATE_DICT") -> Any:
        plugin = FullyShardedDataParallelPlugin(fsdp_version=version, state_dict_type=kept)
        return SimpleNamespace(state=SimpleNamespace(fsdp_plugin=plugin))

    check_sharding(fsdp(2))
    with pytest.raises(DuologueError, match=r"Set fsdp_version: 2 in accelerate's file\.$"):
        check_sharding(fsdp(1))
    with pytest.raises(DuologueError, match=r"Set fsdp_state_dict_type: FULL_STATE_DICT in its file\.$"):
        check_sharding(fsdp(2, "SHARDED_STATE_DICT"))


@pytest.mark.parametrize(("stage", "gathers", "refused"), [(3, False, True), (3, True, False), (2, False, False)])
def test_zero_3_must_save_whole_weights(stage: int, gathers: bool, refused: bool) -> None:
    config = {"zero_optimization": {"stage": stage, "stage3_gather_16bit_weights_on_model_save": gathers}}
    plugin = SimpleNamespace(zero_stage=stage, deepspeed_config=config)
    accelerator = SimpleNamespace(state=SimpleNamespace(deepspeed_plugin=plugin))
    if refused:
        with pytest.raises(DuologueError, match=r"Set zero3_save_16bit_model: true .* in DeepSpeed's\)\.$"):
            check_sharding(accelerator)
    else:
        check_sharding(accelerator)


def test_weights_that_are_whole_stay_as_they_are() -> None:
    model = torch.nn.Linear(2, 2)
    weights = [(parameter, parameter.data_ptr()) for parameter in model.parameters()]
    with whole_weights(SimpleNamespace(model=model, model_wrapped=model)):
        inside = [(parameter, parameter.data_ptr()) for parameter in model.parameters()]
    assert all(a is b and x == y for (a, x), (b, y) in zip(weights, inside, strict=True))
