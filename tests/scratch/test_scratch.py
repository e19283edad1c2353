"""Models from scratch, at the size of a second."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from duologue.cli import app
from duologue.disk import DiskFullError
from duologue.engines.base import Sampling
from duologue.engines.chat import ChatFormat
from duologue.engines.hf import TransformersEngine
from duologue.engines.models import load_model
from duologue.errors import DuologueError
from duologue.simulators.logs import LoggedDialogue, write_logs
from duologue.trainers.conversation import Conversation, Reply, encode
from duologue.trainers.scratch import ScratchConfig, pretrain
from duologue.trainers.scratch_model import _batches, _loss, _schedule, new_model, new_tokenizer, token_rows, train
from duologue.types import Message, Task

COLOURS = ("red", "blue", "green", "black")
SMALL: dict[str, Any] = {"layers": 2, "hidden": 32, "heads": 2, "vocabulary": 320, "context": 64, "batch_tokens": 512}


def dialogue(colour: str, closing: bool = True) -> list[Message]:
    texts = [f"I like {colour}, 12 of it.", f"You like {colour}.", "Yes!"][: 3 if closing else 2]
    return [Message(role="assistant" if i % 2 else "user", content=text) for i, text in enumerate(texts)]


DIALOGUES = [dialogue(colour) for colour in COLOURS] * 8


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return new_tokenizer((m["content"] for messages in DIALOGUES for m in messages), 320)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has read the dialogues many times."""
    output = tmp_path_factory.mktemp("scratch") / "model"
    config = ScratchConfig(output=str(output), epochs=25, learning_rate=1e-2, **{**SMALL, "batch_tokens": 128})
    return pretrain(config, DIALOGUES)


def weights(path: Path) -> bytes:
    return (path / "model.safetensors").read_bytes()


@pytest.mark.parametrize("text", ["I like red.", "naïve café 1,234 ≠ 🦉\n\nnew  paragraph", " blank first", ""])
def test_any_text_comes_back(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_digits_stand_alone_and_control_tokens_are_one(tokenizer: Any) -> None:
    assert tokenizer.convert_ids_to_tokens(tokenizer("1234")["input_ids"]) == ["1", "2", "3", "4"]
    assert len(tokenizer("<|im_start|>")["input_ids"]) == len(tokenizer("<|im_end|>")["input_ids"]) == 1
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer.pad_token_id != tokenizer.eos_token_id
    assert len(tokenizer) <= 320


def test_a_user_cannot_forge_the_end_of_a_turn(tokenizer: Any) -> None:
    chat = ChatFormat(tokenizer)
    ids = chat.opening_ids([Message(role="user", content="<|im_end|>")])
    assert ids.count(chat.end_of_turn_id) == 1


def test_the_template_adds_no_system_prompt(tokenizer: Any) -> None:
    rendered = tokenizer.apply_chat_template(dialogue("red", closing=False), tokenize=False)
    assert rendered == (
        "<|im_start|>user\nI like red, 12 of it.<|im_end|>\n<|im_start|>assistant\nYou like red.<|im_end|>\n"
    )


def test_rows_are_laid_out_as_in_rollouts(tokenizer: Any) -> None:
    chat = ChatFormat(tokenizer)
    messages = dialogue("red")
    [row] = token_rows([messages], tokenizer, 64)
    reply = Reply("", (*chat.text_ids(messages[1]["content"]), chat.end_of_turn_id))
    prompt = encode(Conversation((messages[0],)), chat).ids
    assert row[: len(prompt)] == prompt
    assert row[len(prompt) : len(prompt) + len(reply.token_ids)] == list(reply.token_ids)
    assert row == tokenizer(tokenizer.apply_chat_template(messages, tokenize=False))["input_ids"]


def test_rows_end_with_the_last_turn(tokenizer: Any) -> None:
    [row] = token_rows([dialogue("red", closing=False)], tokenizer, 64)
    assert tokenizer.decode(row).endswith("You like red.<|im_end|>")


def test_batches_hold_every_row_once_within_the_limit() -> None:
    rows = [[0] * int(n) for n in np.random.default_rng(1).integers(5, 60, 200)]
    batches = _batches(rows, 256, np.random.default_rng(0))
    assert sorted(i for batch in batches for i in batch) == list(range(200))
    assert all(max(len(rows[i]) for i in batch) * len(batch) <= 256 for batch in batches)
    padded = sum(max(len(rows[i]) for i in batch) * len(batch) for batch in batches)
    assert padded < 1.1 * sum(map(len, rows))
    assert batches != _batches(rows, 256, np.random.default_rng(1))


def test_a_long_row_is_a_batch_of_its_own() -> None:
    rows = [[0] * n for n in (9, 300, 5, 280)]
    assert sorted(map(sorted, _batches(rows, 256, np.random.default_rng(0)))) == [[0, 2], [1], [3]]


def test_the_learning_rate_warms_up_and_decays() -> None:
    rates = [_schedule(step, 100) for step in range(100)]
    assert rates[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert all(later <= earlier for earlier, later in pairwise(rates[5:]))
    assert 0 < rates[-1] < 0.01
    assert _schedule(0, 1) == 1.0


def test_padding_changes_no_loss_and_every_token_counts(tokenizer: Any) -> None:
    model = new_model(ScratchConfig(**SMALL), tokenizer).model
    rows = token_rows([dialogue("red"), dialogue("blue", closing=False)], tokenizer, 64)
    alone = [_loss(model, [row]) for row in rows]
    counts = torch.tensor([len(row) - 1.0 for row in rows])
    torch.testing.assert_close(_loss(model, rows), (torch.stack(alone) * counts).sum() / counts.sum())
    labels = torch.tensor([rows[0]])
    torch.testing.assert_close(alone[0], model(input_ids=labels, labels=labels).loss)


def test_initial_weights_and_training_depend_on_the_seed_alone(tokenizer: Any) -> None:
    rows = token_rows(DIALOGUES[:8], tokenizer, 64)

    def trained(seed: int) -> tuple[list[float], torch.Tensor]:
        config = ScratchConfig(seed=seed, epochs=2, **SMALL)
        model: Any = new_model(config, tokenizer).model
        return train(model, rows, config), model.model.embed_tokens.weight.detach()

    (curve, embedding), (again, same), (other, _) = trained(0), trained(0), trained(1)
    assert curve == again
    assert torch.equal(embedding, same)
    assert curve != other


@pytest.mark.slow
def test_it_learns_its_logs_and_samples_through_the_engine(folder: Path) -> None:
    loaded = load_model(str(folder), dtype="float32", device="cpu")
    chat = ChatFormat(loaded.tokenizer)
    prompts = [chat.opening_ids(dialogue(colour)[:1]) for colour in COLOURS]
    engine = TransformersEngine(loaded.model, loaded.tokenizer.pad_token_id)
    replies = engine.generate(prompts, Sampling(16, 0.0), chat.stop_ids, [0] * 4)
    assert [chat.decode(reply.token_ids) for reply in replies] == [f"You like {colour}." for colour in COLOURS]
    assert {reply.token_ids[-1] for reply in replies} == {chat.end_of_turn_id}
    assert engine.context_length == 64


@pytest.mark.slow
def test_the_card_says_what_it_is(folder: Path) -> None:
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "trained from scratch" in card
    assert "32 logged dialogues" in card
    assert "hidden 32" in card
    assert str(folder) not in card
    losses = [float(line.split("|")[2]) for line in card.splitlines() if line.startswith("| ") and "step" not in line]
    assert len(losses) == 12
    assert losses[0] > 5 > 0.2 > losses[-1]


@pytest.mark.slow
def test_the_same_configuration_gives_the_same_folder(tmp_path: Path) -> None:
    made = [pretrain(ScratchConfig(output=str(tmp_path / n), epochs=1, **SMALL), DIALOGUES[:8]) for n in ("a", "b")]
    assert weights(made[0]) == weights(made[1])
    for name in ("README.md", "tokenizer.json", "config.json"):
        assert (made[0] / name).read_bytes() == (made[1] / name).read_bytes()


def test_a_full_disk_leaves_no_model_and_the_next_call_makes_it(small_disk: Any, tmp_path: Path) -> None:
    whole = pretrain(ScratchConfig(output=str(tmp_path / "whole"), epochs=1, **SMALL), DIALOGUES[:8])
    config = ScratchConfig(output=str(small_disk.folder / "model"), epochs=1, **SMALL)
    room = 24_576 if small_disk.own else (whole / "model.safetensors").stat().st_size - 1
    with small_disk.full(room), pytest.raises(DiskFullError, match=r"it trains anew, over what is half written\.$"):
        pretrain(config, DIALOGUES[:8])
    assert weights(pretrain(config, DIALOGUES[:8])) == weights(whole)


def logged(path: Path, dialogues: Sequence[Sequence[Message]]) -> Path:
    task = Task("t", "talk", "r")
    return write_logs(path, [LoggedDialogue(str(i), task, tuple(m)) for i, m in enumerate(dialogues)])


def test_the_command(tmp_path: Path) -> None:
    logs = logged(tmp_path / "logs.jsonl", DIALOGUES[:4])
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    command = ["pretrain", str(logs), "--epochs=1", f"--output={tmp_path / 'out'}", *flags]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "The model is in" in result.output
    assert json.loads((tmp_path / "out" / "config.json").read_text())["hidden_size"] == 32
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 2
    assert "holds a model already" in again.output


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("layers", 0, "layers is 0. Set it to a whole number from 1"),
        ("vocabulary", 258, "vocabulary is 258. Set it to a whole number from 259"),
        ("hidden", 100, "hidden 100 is no multiple of twice the 4 heads"),
        ("learning_rate", 0.0, "learning_rate is 0.0. Set it"),
        ("batch_tokens", 0, "batch_tokens is 0"),
        ("seed", -1, "seed is -1"),
    ],
)
def test_values_that_cannot_work(field: str, value: Any, message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        ScratchConfig(**{field: value})


@pytest.mark.parametrize(
    ("dialogues", "message"),
    [
        ([], "There are no dialogues"),
        ([dialogue("red")[1:]], "Dialogue 0 must start with the user"),
        ([dialogue("red"), []], "Dialogue 1 must start with the user"),
        ([dialogue("red"), dialogue("1" * 60)], "Dialogue 1 has .* over the context of 64"),
    ],
)
def test_dialogues_that_cannot_be_learned(tmp_path: Path, dialogues: list[list[Message]], message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        pretrain(ScratchConfig(output=str(tmp_path / "out"), **SMALL), dialogues)
    assert not (tmp_path / "out").exists()
