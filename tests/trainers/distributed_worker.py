"""One process of a run that tests launch: ``distributed_worker.py SETTINGS.json`` (see ``test_distributed.py``)."""

import importlib.util
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import DistributedType
from transformers import TrainerCallback

from duologue.engines.base import Sampling
from duologue.engines.hf import TransformersEngine
from duologue.engines.models import load_model
from duologue.errors import DuologueError
from duologue.trainers.config import InteractiveConfig
from duologue.trainers.interactive import InteractiveTrainer
from duologue.trainers.processes import together
from duologue.trainers.sharding import sharded, whole_weights
from duologue.types import Dialogue, StopReason, UserTurn

RANK = int(os.environ.get("RANK", 0))


def world() -> Any:
    """The tiny world of the neighbouring tests."""
    spec = importlib.util.spec_from_file_location("tiny_world", Path(__file__).with_name("conftest.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def uneven(dialogue: Dialogue) -> UserTurn | None:
    """The first process's users leave after one reply; the other's never do."""
    if not dialogue.messages:
        return None
    stop = StopReason.USER_SATISFIED if RANK == 0 else None
    return UserTurn("yes" if stop else "no", stop=stop)


def fails_on_the_second(slots: int, tiny: Any) -> Any:
    """An environment whose second process breaks when dialogues begin."""
    env = tiny.make_env(slots)
    if RANK == 1:

        def broken(**_: Any) -> Any:
            raise DuologueError("The users of this process are gone. Bring them back.")

        env.reset = broken
    return env


def dying(trainer: Any) -> Callable[..., Any]:
    """A step of training in which the second process ends without a word, as the kernel does it, after two steps."""
    step: Callable[..., Any] = trainer.training_step

    def dies(*args: Any, **options: Any) -> Any:
        if RANK == 1 and trainer.state.global_step == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(*args, **options)

    return dies


class StopAt(TrainerCallback):
    """Ends training early, as somebody would who presses Ctrl-C between steps."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop at a step."""
        control.should_training_stop = state.global_step == self.step


def shard_on_cpus() -> None:
    """Have accelerate shard over processes without accelerators too; it does not, without a word."""
    begin: Any = AcceleratorState.__init__

    def begins(state: Any, *args: Any, **options: Any) -> None:
        begin(state, *args, **options)
        if state.distributed_type == DistributedType.MULTI_CPU:
            state.distributed_type = DistributedType.FSDP
            state.fsdp_plugin = options["fsdp_plugin"]
            PartialState._shared_state["distributed_type"] = DistributedType.FSDP

    setattr(AcceleratorState, "__init__", begins)  # noqa: B010


def share(model: Any) -> float:
    """The part of a model's weights that this process holds."""
    held = [p.to_local().numel() if hasattr(p, "to_local") else p.numel() for p in model.parameters()]
    return float(sum(held) / sum(p.numel() for p in model.parameters()))


def sharded_generation(model_folder: str) -> dict[str, Any]:
    """Sample from a model that FSDP 2 shards, a different number of times on each process, then differentiate."""
    from torch.distributed.fsdp import fully_shard

    loaded = load_model(model_folder, dtype="float32", device="cpu")
    model: Any = loaded.model
    for layer in model.model.layers:
        fully_shard(layer)
    fully_shard(model)
    engine, found = TransformersEngine(model, 0), []
    plugin = SimpleNamespace(fsdp_plugin=SimpleNamespace(reshard_after_forward=True))
    trainer = SimpleNamespace(is_fsdp_enabled=True, model=model, accelerator=SimpleNamespace(state=plugin))
    with whole_weights(trainer):
        for seed in range(2 + 3 * RANK):
            [done] = engine.generate([[2, 4, 7]], Sampling(6, 1.0), [3], [seed])
            found.append(done.token_ids)
    together(lambda: None)  # both are out of the block before weights travel again
    ids = torch.tensor([[2, 4, 7, 8]])
    model(ids, labels=ids).loss.backward()
    norm = sum(float(p.grad.full_tensor().square().sum()) for p in model.parameters() if p.grad is not None)
    return {"tokens": found, "gradient": norm}


def main(runs: list[dict[str, Any]]) -> None:
    """Train as told, one run after the other in the same processes."""
    tiny, calls = world(), count_calls()
    if sharded():
        shard_on_cpus()
    for settings in runs:
        calls.clear()
        case, stop = settings.pop("case"), settings.pop("stop", None)
        trainer = InteractiveTrainer(
            InteractiveConfig(**settings), make_env=maker(case, tiny), callbacks=[StopAt(stop)] if stop else []
        )
        if case == "dies":
            trainer.trainer.training_step = dying(trainer.trainer)
        note: dict[str, Any] = {"error": None}
        try:
            trainer.train()
        except DuologueError as error:
            note["error"] = str(error)
        if case == "resumed":
            note |= sharded_generation(settings["model"])
        note |= {"calls": len(calls), "rows": sum(calls), "share": share(trainer.trainer.model)}
        Path(settings["output"], f"process-{RANK}.json").write_text(json.dumps(note))


def maker(case: str, tiny: Any) -> Callable[[int], Any]:
    """Return what makes the environment of a case."""
    if case == "fails":
        return lambda slots: fails_on_the_second(slots, tiny)
    if case == "uneven":
        return lambda slots: tiny.make_env(slots, tiny.graded, tiny.Wants(uneven), 6)
    if case == "flat" and RANK == 0:  # nothing to learn for the first process
        return lambda slots: tiny.make_env(slots, lambda dialogues: [0.5] * len(dialogues))
    return lambda slots: tiny.make_env(slots, tiny.graded)


def count_calls() -> list[int]:
    """Note the number of rows of each call of the engine."""
    calls: list[int] = []
    generate: Any = TransformersEngine.generate

    def counted(self: Any, prompts: Any, *rest: Any) -> Any:
        calls.append(len(prompts))
        return generate(self, prompts, *rest)

    setattr(TransformersEngine, "generate", counted)  # noqa: B010
    return calls


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(json.loads(Path(sys.argv[1]).read_text()))
