"""A run that was stopped and continued is the run that was not."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import TrainerCallback

from duologue.engines.models import load_model
from duologue.trainers.interactive import InteractiveTrainer
from duologue.trainers.progress import quiet_console

MakeTrainer = Callable[..., InteractiveTrainer]
CLOCKS = ("seconds", "step_time", "sampling/logp_difference")  # the last: checked once per process


class StopAt(TrainerCallback):
    def __init__(self, step: int, *, crash: bool) -> None:
        self.step, self.crash = step, crash

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self.step:
            if self.crash:
                raise KeyboardInterrupt
            control.should_training_stop = True


def weights(folder: Path) -> dict[str, torch.Tensor]:
    [file] = folder.glob("*.safetensors")
    return load_file(file)


def logged(file: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return [{k: v for k, v in row.items() if not k.startswith(CLOCKS)} for row in rows]


@pytest.mark.parametrize("rank", [0, 4])
@pytest.mark.parametrize(("step", "crash"), [(2, False), (3, True)])
def test_stopped_and_continued_is_bit_for_bit_the_same(
    trainer: MakeTrainer, world: SimpleNamespace, tmp_path: Path, rank: int, step: int, crash: bool
) -> None:
    env = {"reward": world.graded}
    options: dict[str, Any] = {"steps": 4, "save_steps": 2, "lora_rank": rank, "learning_rate": 3e-3}
    straight = trainer(env, output=str(tmp_path / "straight"), **options).train()
    stop = StopAt(step, crash=crash)
    first = trainer(env, callbacks=[stop], output=str(tmp_path / "stopped"), **options)
    if crash:
        with pytest.raises(KeyboardInterrupt):
            first.train()
    else:
        first.train()
    assert max(row["step"] for row in first.episodes) == step - 1
    resumed = trainer(env, output=str(tmp_path / "stopped"), **options).train()

    one, other = weights(straight), weights(resumed)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    start = weights(tmp_path / "stopped" / "checkpoint-2")
    assert any(not torch.equal(start[name], one[name]) for name in one)
    for name in ("episodes.jsonl", "metrics.jsonl"):
        assert logged(tmp_path / "straight" / name) == logged(tmp_path / "stopped" / name)
    assert [row["step"] for row in logged(tmp_path / "stopped" / "episodes.jsonl")] == [i // 8 for i in range(32)]
    assert [row["step"] for row in logged(tmp_path / "stopped" / "metrics.jsonl")] == [1, 2, 3, 4]


def test_a_finished_run_is_not_run_again(trainer: MakeTrainer) -> None:
    final = trainer(steps=2, save_steps=2).train()
    before = weights(final)
    again = trainer(steps=2, save_steps=2)
    assert again.train() == final
    assert all(torch.equal(before[name], tensor) for name, tensor in weights(final).items())
    assert [row["step"] for row in again.metrics] == [1, 2]


def test_a_run_can_be_extended(trainer: MakeTrainer, tmp_path: Path) -> None:
    long = trainer(steps=4, output=str(tmp_path / "long")).train()
    trainer(steps=2, save_steps=2).train()
    extended = trainer(steps=4, save_steps=2).train()
    assert all(torch.equal(tensor, weights(extended)[name]) for name, tensor in weights(long).items())


def test_the_policy_loads_where_evaluation_loads_it(trainer: MakeTrainer) -> None:
    made = trainer(steps=1, lora_rank=4)
    final = made.train()
    with quiet_console():  # PEFT reads a deprecated name
        loaded = load_model(str(final), dtype="float32", device="cpu")
    ids = torch.tensor([made.chat.opening_ids([{"role": "user", "content": "please say red"}])])
    made.trainer.model.eval()
    with torch.no_grad():
        torch.testing.assert_close(loaded.model(ids).logits, made.trainer.model(ids).logits)
    assert loaded.tokenizer.chat_template == made.loaded.tokenizer.chat_template


def test_without_resume_a_run_starts_again(trainer: MakeTrainer) -> None:
    trainer(steps=2).train()
    again = trainer(steps=1, resume=False)
    again.train()
    assert [row["step"] for row in again.metrics] == [1]
    assert {row["step"] for row in again.episodes} == {0}


def test_older_checkpoints_are_removed_after_a_newer_one_is_there(trainer: MakeTrainer) -> None:
    made = trainer(steps=3, save_steps=1, trl={"save_total_limit": 2})
    made.train()
    assert sorted(path.name for path in made.output.glob("checkpoint-*")) == ["checkpoint-2", "checkpoint-3"]
    assert not (made.output / "partial").exists()


def test_checkpoints_for_the_hub_are_written_in_place(trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch) -> None:
    made, pushed = trainer(steps=1, save_steps=1), []
    made.trainer.args.push_to_hub = True
    monkeypatch.setattr(made.trainer, "_push_from_checkpoint", lambda folder: pushed.append(Path(folder)))
    monkeypatch.setattr(made.trainer, "init_hf_repo", lambda *_, **__: None)
    monkeypatch.setattr(made.trainer, "push_to_hub", lambda *_, **__: None)
    monkeypatch.setattr(made.trainer, "_finish_current_push", lambda: None)
    made.train()
    assert pushed == [made.output / "checkpoint-1"]
    assert (made.output / "checkpoint-1" / "trainer_state.json").is_file()
