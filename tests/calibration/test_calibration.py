"""Calibration as a whole: what carries loss, what is held out and refused, and that it learns."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trl import SFTTrainer

from duologue.engines.chat import ChatFormat
from duologue.engines.models import LoadedModel, load_model
from duologue.errors import DuologueError
from duologue.simulators.calibrated_folder import read_note
from duologue.simulators.calibrated_layout import GIVEN, training_row
from duologue.simulators.logs import write_logs
from duologue.trainers import supervised
from duologue.trainers.calibration import calibrate
from duologue.trainers.calibration_config import CalibrateConfig
from duologue.trainers.calibration_rows import data_hash, divide, prepare
from duologue.types import StopReason

Load = Callable[[], LoadedModel]
Settings = Callable[..., CalibrateConfig]


def test_labels_that_reach_the_loss(
    world: SimpleNamespace, load: Load, settings: Settings, chat: ChatFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def spy(**arguments: Any) -> Any:
        made.append(SFTTrainer(**arguments))
        return made[0]

    monkeypatch.setattr(supervised, "SFTTrainer", spy)
    calibrate(settings(epochs=1), world.people(8), world.people(9)[8:], load())
    batch = next(iter(made[0].get_train_dataloader()))
    texts = [chat.tokenizer.decode(labels[labels != -100].tolist()) for labels in batch["labels"]]
    ends = "<|im_end|>"
    assert f"say red{ends}go on\n0 red{ends}satisfied\nthanks{ends}" in texts
    assert f"say blue{ends}go on\n3 blue{ends}give up\nbye{ends}" in texts
    for ids, labels in zip(batch["input_ids"], batch["labels"], strict=True):
        assert (ids[labels != -100] == labels[labels != -100]).all()


def test_given_tokens_get_no_gradient(world: SimpleNamespace, load: Load, chat: ChatFormat) -> None:
    """The loss that the mask describes does not depend on the scores at any given position."""
    row, _ = training_row(world.people(1)[0], chat, world.PROMPT)
    ids, mask = torch.tensor([row.ids]), torch.tensor(row.mask, dtype=torch.bool)
    logits: Any = load().model(ids).logits.detach().requires_grad_()
    labels = torch.where(mask, ids[0], -100)
    loss: Any = torch.nn.functional.cross_entropy(logits[0, :-1], labels[1:], ignore_index=-100)
    loss.backward()
    touched = logits.grad[0].abs().sum(dim=1)[:-1] > 0
    assert touched.tolist() == mask[1:].tolist()
    assert [kind != GIVEN for kind in row.kinds] == mask.tolist()


@pytest.mark.parametrize("rank", [4, 0])
def test_it_learns_and_leaves_a_complete_folder(world: SimpleNamespace, settings: Settings, rank: int) -> None:
    said: list[str] = []
    config = settings(lora_rank=rank, epochs=5, batch_size=4, learning_rate=2e-2)
    folder = calibrate(config, world.people(16), on_phase=said.append)
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["after"]["all"]["value"] < 0.8 * metrics["before"]["all"]["value"]
    assert metrics["change"]["high"] < 0
    assert metrics["split"] == "person"
    assert metrics["persons_in_both"] == 0
    assert metrics["training"]["dialogues"] + metrics["held_out"]["dialogues"] == 16
    files = {"adapter_model.safetensors"} if rank else {"model.safetensors", "config.json"}
    assert {"calibration.json", "README.md", "tokenizer.json", *files} <= {path.name for path in folder.iterdir()}
    note = read_note(folder)
    assert (note.env, note.settings["lora_rank"]) == ("MathChat", rank)
    parts = divide(world.people(16), None, config.seed)
    assert note.data_hash == data_hash(parts.training)
    loaded = load_model(str(folder), dtype="float32", device="cpu")
    longest = prepare(parts.training, ChatFormat(loaded.tokenizer), note.prompt, 500, drop_long=False).longest_turn
    assert note.max_new_tokens == longest
    assert len(said) == 3


def test_the_card_says_what_was_measured(world: SimpleNamespace, settings: Settings) -> None:
    folder = calibrate(settings(epochs=1), world.people(16))
    card, metrics = (folder / "README.md").read_text(), json.loads((folder / "metrics.json").read_text())
    assert card.startswith("---\nlibrary_name: peft\n")
    assert f"{metrics['after']['all']['value']:.3f} [" in card
    assert f"| held out | {metrics['held_out']['dialogues']} |" in card
    assert "- epochs: 1" in card
    assert str(folder.parent) not in card  # no paths of the machine
    assert card.count("\n| 2 | ") == 1  # a line per user turn


def test_files_and_the_same_seed(world: SimpleNamespace, settings: Settings, tmp_path: Path) -> None:
    train = str(write_logs(tmp_path / "train.jsonl", world.people(12)))
    test = str(write_logs(tmp_path / "test.jsonl", world.people(16)[12:]))
    texts = []
    for name in ("a", "b"):
        config = settings(dialogues=train, held_out=test, output=str(tmp_path / name), epochs=1)
        texts.append((calibrate(config) / "metrics.json").read_text())
    assert texts[0] == texts[1]
    assert json.loads(texts[0])["split"] == "given"
    with pytest.raises(DuologueError, match=r"holds a calibrated user already[.] Choose another output"):
        calibrate(config)


def test_leaked_rows_are_refused(world: SimpleNamespace, settings: Settings, load: Load) -> None:
    rows = world.people(8)
    again = world.log(*(m["content"] for m in rows[3].messages), name="other id", word="blue")
    with pytest.raises(DuologueError, match=r"share 1 thing.*'d3'.*'other id'"):
        calibrate(settings(), rows, [again], load())


def test_splits(world: SimpleNamespace) -> None:
    people = world.people(40)
    parts = divide(people, None)
    assert parts.by == "person"
    assert not {d.person for d in parts.training} & {d.person for d in parts.held_out}
    alone = [world.log("a", str(i), name=f"x{i}") for i in range(40)]
    parts = divide(alone, None)
    assert parts.by == "dialogue"
    assert sorted(d.dialogue_id for d in (*parts.training, *parts.held_out)) == sorted(d.dialogue_id for d in alone)
    assert 2 <= len(parts.held_out) <= 16


def test_long_dialogues_are_refused_or_dropped_and_counted(world: SimpleNamespace, chat: ChatFormat) -> None:
    rows = [*world.people(2), world.log("say red", "word " * 300, "ok", name="long", stop=StopReason.USER_GAVE_UP)]
    with pytest.raises(DuologueError, match=r"'long' has \d+ tokens, over the 200 .* drop_long"):
        prepare(rows, chat, world.PROMPT, 200, drop_long=False)
    made = prepare(rows, chat, world.PROMPT, 200, drop_long=True)
    assert made.dropped == ["long"]
    assert made.counts()["dropped_as_too_long"] == ["long"]
    with pytest.raises(DuologueError, match="All 3 dialogues are longer than 5 tokens"):
        prepare(rows, chat, world.PROMPT, 5, drop_long=True)


def test_counts(world: SimpleNamespace, chat: ChatFormat) -> None:
    rows = [*world.people(4), world.log("é", "b", "c", name="open")]
    made = prepare(rows, chat, world.PROMPT, 200, drop_long=False)
    counts = made.counts()
    assert (counts["dialogues"], counts["persons"], counts["user_turns"]) == (5, None, 13)
    assert counts["decisions"] == {"go on": 4, "satisfied": 3, "give up": 1}
    assert counts["last_messages_left_out"] == 1
    assert counts["user_tokens"] == sum(sum(row["completion_mask"]) for row in made.training_rows)
    assert made.text_bytes[-1] == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"env": "MathsChat-v0"}, "Did you mean 'MathChat-v0'"),
        ({"epochs": 0}, "epochs is 0"),
        ({"lora_rank": 0, "lora_top_layers": 1}, "lora_top_layers needs adapters"),
    ],
)
def test_bad_settings(settings: Settings, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        settings(**changes)


def test_missing_dialogues(settings: Settings, world: SimpleNamespace, load: Load) -> None:
    with pytest.raises(DuologueError, match=r"Give --dialogues FILE[.]jsonl"):
        calibrate(settings())
    with pytest.raises(DuologueError, match="no training dialogues"):
        calibrate(settings(), [])
    with pytest.raises(DuologueError, match="no held-out dialogues"):
        calibrate(settings(), world.people(4), [], load())
    broken = world.log("a", stop=StopReason.USER_SATISFIED)
    with pytest.raises(DuologueError, match="ends with its opening"):
        calibrate(settings(), world.people(4), [broken], load())
