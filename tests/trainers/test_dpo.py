"""Offline DPO: what reaches the loss, that it learns, that it goes on, and what is refused."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trl.data_utils import is_conversational
from typer.testing import CliRunner

from duologue import trainers
from duologue.cli import app
from duologue.engines.chat import ChatFormat
from duologue.engines.models import LoadedModel, load_model
from duologue.envs import DialogueVectorEnv, LoggedContexts
from duologue.errors import DuologueError
from duologue.simulators.logs import LoggedDialogue, write_logs
from duologue.trainers import dpo
from duologue.trainers.dpo import DpoConfig, fit_pairs, pair_rows, train_dpo
from duologue.trainers.dpo_pairs import _FREE, HOPELESS
from duologue.trainers.preference_pairs import PreferencePair, ValuedContext, ValuedReply
from duologue.trainers.static import MakeContextEnv
from duologue.types import Message

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "dpo.md").read_text(encoding="utf-8")
Load = Callable[[], LoadedModel]


class Killed(BaseException):
    """Stands for a process that dies."""


@pytest.fixture
def logs(world: SimpleNamespace, tmp_path: Path) -> Path:
    """Four dialogues of two turns."""
    made = []
    for hello in ("hello", "hi"):
        for task in world.tasks:
            texts = (f"{hello} {task.instruction}", "what", f"no {task.instruction}", "why")
            messages = tuple(Message(role=("user", "assistant")[i % 2], content=t) for i, t in enumerate(texts))
            made.append(LoggedDialogue(f"{hello}-{task.task_id}", task, messages))
    return write_logs(tmp_path / "logs.jsonl", made)


@pytest.fixture
def config(model_folder: Path, logs: Path, tmp_path: Path) -> Callable[..., DpoConfig]:
    """Makes a configuration of a run that takes a second or two."""

    def make(**changes: Any) -> DpoConfig:
        usual: dict[str, Any] = {
            "model": str(model_folder),
            "dialogues": str(logs),
            "output": str(tmp_path / "run"),
            "replies": 3,
            "continuations": 2,
            "max_tokens_per_turn": 6,
            "max_total_tokens": 100,
            "lora_rank": 0,
            "dtype": "float32",
            "num_envs": 16,
        }
        return DpoConfig(**{**usual, **changes})

    return make


@pytest.fixture
def make_env(world: SimpleNamespace) -> Callable[..., MakeContextEnv]:
    """Makes a maker of the world of ``conftest``, where almost no two dialogues earn the same."""

    def make(reward: Any = world.graded, simulator: Any = None) -> MakeContextEnv:
        return lambda n, c: DialogueVectorEnv(n, None, simulator or world.Wants(), reward, 3, contexts=c)

    return make


def pairs_for(chat: ChatFormat, count: int = 8) -> list[PreferencePair]:
    """Pairs in which "red" is right."""
    prompt = (Message(role="user", content="hello please say it"),)
    red, blue = (
        ValuedReply(word, (*chat.text_ids(word), chat.end_of_turn_id), (value,))
        for word, value in (("red", 1.0), ("blue", 0.0))
    )
    return [PreferencePair(f"d{i}#1", "t", prompt, red, blue) for i in range(count)]


def margin(loaded: LoadedModel, chat: ChatFormat) -> float:
    """How much more likely the chosen reply is than the rejected one, in nats, computed without TRL."""
    [row] = pair_rows(pairs_for(chat, 1), chat)
    found = []
    for side in ("chosen_ids", "rejected_ids"):
        ids = torch.tensor([row["prompt_ids"] + row[side]])
        with torch.no_grad():
            logp = torch.log_softmax(loaded.model(ids).logits[0, :-1].float(), dim=-1)
        picked = logp.gather(1, ids[0, 1:, None]).squeeze(1)
        found.append(float(picked[len(row["prompt_ids"]) - 1 :].sum()))
    return found[0] - found[1]


def test_rows_are_what_was_read_and_sampled(chat: ChatFormat) -> None:
    [row] = pair_rows(pairs_for(chat, 1), chat)
    spelled = {name: " ".join(chat.tokenizer.convert_ids_to_tokens(ids)) for name, ids in row.items()}
    assert spelled == {
        "prompt_ids": "<|im_start|> user hello please say it <|im_end|> <|im_start|> assistant",
        "chosen_ids": "red <|im_end|>",
        "rejected_ids": "blue <|im_end|>",
    }


def test_what_reaches_the_loss_is_not_cut(
    config: Callable[..., DpoConfig], load: Load, chat: ChatFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1,200 tokens, more than TRL takes by default; at first the policy is its own reference, and the loss log 2."""
    made: list[Any] = []
    usual = dpo._TokenDPOTrainer

    def spy(**arguments: Any) -> Any:
        made.append(usual(**arguments))
        return made[0]

    monkeypatch.setattr(dpo, "_TokenDPOTrainer", spy)
    [pair] = pairs_for(chat, 1)
    prompt = (Message(role="user", content="hello " * 1_200),)
    long = PreferencePair("d#1", "t", prompt, pair.chosen, pair.rejected)
    fit_pairs(config(batch_size=1), [long], load())
    [batch] = made[0].get_train_dataloader()
    assert batch["input_ids"].shape[1] > 1_200
    assert batch["completion_mask"].sum().item() == 4
    [row] = [json.loads(line) for line in (Path(config().output) / "metrics.jsonl").read_text().splitlines()]
    assert row["loss"] == pytest.approx(0.6931, abs=1e-3)


@pytest.mark.parametrize("rank", [0, 8])
def test_it_raises_the_better_reply_over_the_worse_and_the_result_loads(
    config: Callable[..., DpoConfig], load: Load, chat: ChatFormat, model_folder: Path, rank: int
) -> None:
    given = config(learning_rate=5e-3, epochs=10, lora_rank=rank)
    before = margin(load(), chat)
    final = fit_pairs(given, pairs_for(chat), load())
    after = load_model(str(final), dtype="float32", device="cpu")
    assert margin(after, chat) > before + 1.0
    assert after.tokenizer.chat_template == chat.tokenizer.chat_template
    assert not (final / "training_args.bin").exists()
    rows = [json.loads(line) for line in (Path(given.output) / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == list(range(1, 11))
    assert rows[0]["loss"] == pytest.approx(0.6931, abs=1e-3)
    assert rows[-1]["rewards/margins"] > 0


def test_an_adapter_is_trained_on_and_its_reference_copy_is_not_saved(
    config: Callable[..., DpoConfig],
    load: Load,
    chat: ChatFormat,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = {"learning_rate": 5e-3, "epochs": 5, "lora_rank": 4}
    capsys.readouterr()
    first = fit_pairs(config(output=str(tmp_path / "a"), **given), pairs_for(chat), load())
    assert "reference log probs" not in capsys.readouterr().err
    assert "TQDM_DISABLE" not in os.environ
    loaded = load_model(str(first), dtype="float32", device="cpu")
    middle = margin(loaded, chat)
    second = fit_pairs(config(output=str(tmp_path / "b"), **given), pairs_for(chat), loaded)
    assert not (second / "ref").exists()
    assert margin(load_model(str(second), dtype="float32", device="cpu"), chat) > middle
    assert '"loss": 0.6931' in (tmp_path / "b" / "metrics.jsonl").read_text().splitlines()[0]


def test_a_run_from_logs_to_policy(config: Callable[..., DpoConfig], make_env: Callable[..., MakeContextEnv]) -> None:
    said: list[str] = []
    given, output = config(lora_rank=4, max_contexts=6), Path(config().output)
    assert train_dpo(given, make_env=make_env(), on_phase=said.append) == output / "final"
    names = {path.name for path in output.iterdir()}
    assert names == {
        "config.json",
        "replies.jsonl",
        "pairs.jsonl",
        "counts.json",
        "metrics.jsonl",
        "final",
        "README.md",
    } - ({"README.md"} - names)
    rows = [json.loads(line) for line in (output / "pairs.jsonl").read_text().splitlines()]
    counts = json.loads((output / "counts.json").read_text())
    assert len(rows) == counts["pairs"] >= 4
    assert (counts["contexts"], counts["continuations"], counts["unscored"]) == (6, 36, 0)
    assert counts["sampled_tokens"] > 0
    for row in rows:
        assert is_conversational(row)
        assert row["prompt"][-1]["role"] == "user"
        assert row["chosen_value"] > row["rejected_value"]
        assert (row["chosen_n"], row["rejected_n"]) >= (2, 2)
        assert row["context_id"].partition("#")[0].endswith(row["task_id"])
    outcome = f"6 histories gave {len(rows)} pairs; in 0 all replies were worth the same, in 0 fewer than two different"
    [sentence] = said
    assert sentence.startswith(outcome)
    assert sentence.endswith("0 of 36 continuations could not be scored. Training on the pairs.")


def test_killed_and_called_again_it_comes_to_the_same_pairs(
    config: Callable[..., DpoConfig], make_env: Callable[..., MakeContextEnv], tmp_path: Path
) -> None:
    train_dpo(config(num_envs=4, max_contexts=5), make_env=make_env())
    again = config(output=str(tmp_path / "again"), num_envs=4, max_contexts=5)

    def die(done: int, total: int, value: float | None) -> None:
        assert value is not None
        if done == 2:
            raise Killed

    with pytest.raises(Killed):
        train_dpo(again, make_env=make_env(), on_progress=die)
    replies = tmp_path / "again" / "replies.jsonl"
    with replies.open("a", encoding="utf-8") as file:
        file.write('{"context_id": "half a li')
    followed: list[int] = []
    train_dpo(again, make_env=make_env(), on_progress=lambda done, *_: followed.append(done))
    assert followed == [3, 4, 5]
    for name in ("pairs.jsonl", "counts.json", "final/model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "run" / name).read_bytes(), name
    assert len(replies.read_text().splitlines()) == 5


def test_the_same_folder_trains_anew_without_playing(
    config: Callable[..., DpoConfig], make_env: Callable[..., MakeContextEnv]
) -> None:
    def nothing(slots: int, contexts: LoggedContexts) -> Any:
        raise AssertionError("All replies are valued.")

    train_dpo(config(), make_env=make_env())
    train_dpo(config(beta=0.5, learning_rate=1e-4, batch_size=2, max_contexts=5), make_env=nothing)
    replies = Path(config().output) / "replies.jsonl"
    lines = replies.read_text()
    replies.write_text(lines + "{}\n")
    with pytest.raises(DuologueError, match=r"Line 9 of .*replies.jsonl' is no valued history .*Remove the line"):
        train_dpo(config(), make_env=nothing)
    replies.write_text(lines)
    with pytest.raises(DuologueError, match=r"holds other replies \(replies: 3 -> 4\)\. Set these back, or choose"):
        train_dpo(config(replies=4), make_env=nothing)
    assert {f.name for f in fields(DpoConfig)} > _FREE


def test_a_user_that_cannot_take_up_a_history_ends_the_run_early(
    config: Callable[..., DpoConfig], make_env: Callable[..., MakeContextEnv], world: SimpleNamespace
) -> None:
    def lost(dialogue: Any) -> None:
        raise RuntimeError("I did not begin this")

    user = world.Wants(lost)
    with pytest.raises(DuologueError, match=r"No continuation of the first \d histories .*did not begin.* take up"):
        train_dpo(config(), make_env=make_env(simulator=user))
    assert HOPELESS <= 8
    train_dpo(config(), make_env=make_env())  # what could not be scored is played again


def test_where_nothing_differs_there_is_nothing_to_prefer(
    config: Callable[..., DpoConfig], make_env: Callable[..., MakeContextEnv]
) -> None:
    def flat(dialogues: Sequence[Any]) -> list[float | None]:
        return [0.5 for _ in dialogues]

    with pytest.raises(DuologueError, match=r"nothing to prefer: 8 histories gave 0 pairs; in 8 all .*Raise replies"):
        train_dpo(config(), make_env=make_env(flat))
    with pytest.raises(DuologueError, match=r"leave no room for a reply of 6 tokens"):
        train_dpo(config(max_total_tokens=20), make_env=make_env())


def test_a_policy_without_pairs_stays_as_it_is(config: Callable[..., DpoConfig], tmp_path: Path) -> None:
    """Its folder is whole or not there: a write that fails leaves what stood there."""
    made = config()
    final = dpo.keep_policy(made)
    kept, given = (load_model(str(folder)).model.state_dict() for folder in (final, Path(made.model)))
    assert all(torch.equal(kept[name], given[name]) for name in given)
    before = {path.name: path.read_bytes() for path in final.iterdir()}

    def full(folder: str) -> None:
        raise OSError(28, "No space left on device")

    broken: Any = SimpleNamespace(model=load_model(made.model).model, tokenizer=SimpleNamespace(save_pretrained=full))
    with pytest.raises(OSError, match="No space"):
        dpo.keep_policy(made, broken)
    assert {path.name: path.read_bytes() for path in final.iterdir()} == before
    assert [path.name for path in Path(made.output).iterdir() if path != final] == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dialogues": None}, "Set dialogues to a JSONL file"),
        ({"replies": 1}, "replies is 1. Set it to a whole number from 2"),
        ({"continuations": 0}, "continuations is 0. Set it to a whole number from 1"),
        ({"max_contexts": 0}, "max_contexts is 0"),
        ({"beta": 0.0}, "beta is 0, at which DPO learns nothing"),
        ({"beta": -1.0}, "beta is -1.0"),
        ({"max_tokens_per_turn": 200}, "is over max_total_tokens"),
    ],
)
def test_what_cannot_work_is_refused(config: Callable[..., DpoConfig], changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DuologueError, match=said):
        config(**changes)


def test_the_page_lists_every_field() -> None:
    for f in fields(DpoConfig):
        value = "none" if f.default is None else f"`{f.default}`"
        assert f"| `{f.name}` | {value} | {f.metadata['help']} |" in PAGE


def test_a_valued_context_survives_json(chat: ChatFormat) -> None:
    [pair] = pairs_for(chat, 1)
    context = ValuedContext("d#1", "t", pair.prompt, (pair.chosen, pair.rejected), 4, {"policy_error: x": 1})
    assert ValuedContext.from_json(json.loads(json.dumps(context.to_json()))) == context
    assert asdict(context)["replies"][0]["text"] == "red"


def test_the_command_hands_its_configuration_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[DpoConfig] = []

    def fake(config: DpoConfig, on_progress: Any, on_phase: Callable[[str], None]) -> Path:
        seen.append(config)
        on_phase("4 histories gave 2 pairs.")
        return Path(config.output) / "final"

    monkeypatch.setitem(vars(trainers), "train_dpo", fake)
    flags = ["--dialogues", "l.jsonl", "--replies", "5", "--simulator", "scripted:naive", "--beta", "0.2"]
    result = CliRunner().invoke(app, ["train", "dpo", "MediumDocEditChat-v0", *flags, "--output", "out"])
    assert result.exit_code == 0, result.output
    expected = {"dialogues": "l.jsonl", "replies": 5, "simulator": "scripted:naive", "beta": 0.2, "output": "out"}
    assert seen == [DpoConfig(env="MediumDocEditChat-v0", **expected)]  # type: ignore[arg-type]
    assert f"The trained policy is in {Path('out', 'final')}" in result.stdout
    assert "gave 2 pairs" in result.stderr


def test_help_teaches_by_example_and_mistakes_are_one_line() -> None:
    shown = CliRunner().invoke(app, ["train", "dpo", "--help"]).stdout
    assert "duologue train dpo MathChat-v0 --dialogues logs.jsonl" in shown.partition("Examples:")[2]
    result = CliRunner().invoke(app, ["train", "dpo"])
    assert result.exit_code == 2
    assert "Set dialogues to a JSONL file of logs." in result.stderr
