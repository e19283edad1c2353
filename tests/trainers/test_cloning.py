"""Behaviour cloning: what carries loss, what is refused, and that it learns."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trl import SFTTrainer

from duologue.engines.chat import ChatFormat
from duologue.engines.models import LoadedModel, load_model
from duologue.errors import DuologueError
from duologue.trainers import supervised
from duologue.trainers.agents import TokenAgent
from duologue.trainers.cloning import CloningConfig, as_reply, clone, training_rows
from duologue.trainers.progress import quiet_console
from duologue.trainers.rollout import Rollout, Start
from duologue.types import Message

Load = Callable[[], LoadedModel]


def dialogue(*texts: str) -> list[Message]:
    return [Message(role=("user", "assistant")[i % 2], content=text) for i, text in enumerate(texts)]


CORPUS = [
    dialogue(f"{hello} please say {word}", "what", f"no please say {word}", word, "yes")
    for hello in ("hello", "hi", "now", "then")
    for word in ("red", "blue")
]


def learned(row: dict[str, list[int]], chat: ChatFormat) -> str:
    ids = [i for i, bit in zip(row["input_ids"], row["completion_mask"], strict=True) if bit]
    return " ".join(chat.tokenizer.convert_ids_to_tokens(ids))


def test_only_the_assistants_tokens_and_its_end_of_turn_carry_loss(chat: ChatFormat) -> None:
    [row] = training_rows([CORPUS[0]], chat, 100)
    assert learned(row, chat) == "what <|im_end|> red <|im_end|>"
    spelled = " ".join(chat.tokenizer.convert_ids_to_tokens(row["input_ids"]))
    assert spelled.startswith(
        "<|im_start|> user hello please say red <|im_end|> <|im_start|> assistant what <|im_end|>"
    )
    assert spelled.endswith("assistant red <|im_end|>")  # the user's last word, "yes", taught nothing


def test_rows_are_laid_out_as_rollouts_are(world: SimpleNamespace, make_agent: Callable[..., TokenAgent]) -> None:
    agent = make_agent()
    episodes = Rollout(world.make_env(4), agent).play([Start(i, i) for i in range(40)])
    compared = 0
    for episode in episodes:
        if all(i >= 3 for s in episode.spans for i in episode.completion_ids[s.start : s.end]):  # no <unk> and the like
            [row] = training_rows([episode.messages], agent.chat, 100)
            assert row["input_ids"] == [*episode.prompt_ids, *episode.completion_ids][: len(row["input_ids"])]
            compared += 1
    assert compared > 2


def test_labels_that_reach_the_loss(
    load: Load, chat: ChatFormat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def spy(**arguments: Any) -> Any:
        made.append(SFTTrainer(**arguments))
        return made[0]

    monkeypatch.setattr(supervised, "SFTTrainer", spy)
    clone(CloningConfig(output=str(tmp_path), batch_size=4, dtype="float32", lora_rank=0), CORPUS[:4], load())
    batch = next(iter(made[0].get_train_dataloader()))
    for ids, labels in zip(batch["input_ids"], batch["labels"], strict=True):
        kept = labels != -100
        assert (ids[kept] == labels[kept]).all()
        words = " ".join(chat.tokenizer.convert_ids_to_tokens(labels[kept].tolist()))
        assert words in ("what <|im_end|> red <|im_end|>", "what <|im_end|> blue <|im_end|>")


@pytest.mark.parametrize("rank", [0, 8])
def test_it_learns_and_the_result_loads(model_folder: Path, chat: ChatFormat, tmp_path: Path, rank: int) -> None:
    config = CloningConfig(
        model=str(model_folder),
        output=str(tmp_path / "cloned"),
        epochs=30,
        batch_size=8,
        learning_rate=2e-2,
        lora_rank=rank,
        dtype="float32",
    )
    folder = clone(config, CORPUS)
    with quiet_console():
        before, after = (load_model(str(f), dtype="float32", device="cpu") for f in (model_folder, folder))
    assert nll(after, chat) < 0.5 * nll(before, chat)
    assert after.tokenizer.chat_template == chat.tokenizer.chat_template


def nll(loaded: LoadedModel, chat: ChatFormat) -> float:
    total = 0.0
    for row in training_rows(CORPUS, chat, 100):
        ids, mask = torch.tensor([row["input_ids"]]), torch.tensor(row["completion_mask"][1:])
        with torch.no_grad():
            logp = torch.log_softmax(loaded.model(ids).logits[0, :-1].float(), dim=-1)
        total -= float((logp.gather(1, ids[0, 1:, None]).squeeze(1) * mask).sum())
    return total


@pytest.mark.parametrize(
    ("dialogues", "message"),
    [
        ([], r"There are no dialogues to train on. Play some"),
        ([CORPUS[0], dialogue("hi")], r"Dialogue 1 must start with the user and take turns"),
        ([CORPUS[0], CORPUS[0], CORPUS[0][1:]], r"Dialogue 2 must start with the user"),
        ([[*CORPUS[0][:1], *CORPUS[0][:2]]], r"Dialogue 0 must start .* Merge or drop"),
        ([[Message(role="system", content="x"), *CORPUS[0]]], r"Dialogue 0 must start"),
        (
            [CORPUS[0], dialogue("hi", "red " * 90)],
            r"Dialogue 1 has \d+ tokens, over max_total_tokens 60. Raise the limit",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_refused_by_its_index(
    chat: ChatFormat, dialogues: Sequence[Sequence[Message]], message: str
) -> None:
    with pytest.raises(DuologueError, match=message):
        training_rows(dialogues, chat, 60)


def test_control_tokens_in_a_log_are_plain_text(chat: ChatFormat) -> None:
    [row] = training_rows([dialogue("hi <|im_end|>", "red <|im_start|> <|im_end|>")], chat, 60)
    assert row["input_ids"].count(chat.end_of_turn_id) == 2
    assert as_reply("red <|im_end|>", chat).token_ids.count(chat.end_of_turn_id) == 1
