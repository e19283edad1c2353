"""Held-out NLL: by hand on a model of one layer, and none where there are no probabilities."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from duologue.analysis.fidelity.foretell import foretold
from duologue.engines.local_chat import LocalChat
from duologue.engines.models import LoadedModel
from duologue.simulators import GuardedUser, PromptedUser, ScriptedMathUser
from duologue.simulators.calibrated import CalibratedUser
from duologue.simulators.calibrated_folder import CalibrationNote
from duologue.simulators.logs import LoggedDialogue
from duologue.types import Dialogue, Message, StopReason, Task

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXTS = ("say red", "what", 'I said "red"', "red", "thanks")
LOG = LoggedDialogue(
    "d",
    Task("t", "say red", "red"),
    tuple(Message(role="assistant" if i % 2 else "user", content=text) for i, text in enumerate(TEXTS)),
    StopReason.USER_SATISFIED,
)


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    """A byte-level tokenizer and a model with random weights of one seed."""
    made = Tokenizer(BPE(vocab={c: i for i, c in enumerate(sorted(ByteLevel.alphabet()))}, merges=[]))
    made.pre_tokenizer = ByteLevel(add_prefix_space=False)
    made.add_special_tokens([AddedToken(t, special=True) for t in ("<|im_start|>", "<|im_end|>")])
    tokenizer: Any = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|im_end|>"
    )
    tokenizer.chat_template = TEMPLATE
    config = LlamaConfig(
        vocab_size=258, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=1024,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LlamaForCausalLM(config)
    return LoadedModel(model.train(False), tokenizer, "tiny")


def nats(loaded: LoadedModel, before: list[int], ids: list[int]) -> float:
    """Worked out a token at a time, by cross-entropy."""
    with torch.no_grad():
        logits = loaded.model(torch.tensor([before + ids])).logits[0]
    found = torch.nn.functional.cross_entropy(logits[len(before) - 1 : -1].double(), torch.tensor(ids), reduction="sum")
    return float(found)


def test_a_prompted_model_is_scored_on_the_person_s_words_in_its_own_prompt(loaded: LoadedModel) -> None:
    chat = LocalChat(loaded)
    user = PromptedUser(chat, "MathChat", template="{{ task.instruction }}|{{ history|length }}")
    found = foretold(GuardedUser(user), [LOG])
    assert found is not None
    total, count = 0.0, 0
    for i in (0, 2, 4):
        prompt = user.prompt(Dialogue(LOG.task, 0, LOG.messages[:i]))
        before = chat.format.opening_ids([Message(role="user", content=prompt)])
        ids = chat.format.text_ids(json.dumps(TEXTS[i])[1:])
        total += nats(loaded, [*before, *chat.format.text_ids('{"thought": "", "message": "')], ids)
        count += len(ids)
    assert found["per_token"]["value"] == pytest.approx(total / count, rel=1e-5)
    assert found["per_token"]["n"] == count
    text_bytes = sum(len(TEXTS[i]) for i in (0, 2, 4))
    assert found["bits_per_byte"]["value"] == pytest.approx(total / math.log(2) / text_bytes, rel=1e-5)
    assert len(found["by_turn"]) == 3
    assert found["tokenizer"] == loaded.signature
    assert found["left_out"] == 0


def test_what_does_not_fit_is_counted(loaded: LoadedModel) -> None:
    user = PromptedUser(LocalChat(loaded), "MathChat", template="{{ 'x' * 2000 }}")
    found = foretold(user, [LOG])
    assert found is not None
    assert found["left_out"] == 1
    assert found["per_token"]["value"] is None


def test_a_calibrated_user_is_scored_in_its_own_layout(loaded: LoadedModel, tmp_path: Path) -> None:
    CalibrationNote("MathChat", "{{ task.instruction }}", 32, "tiny", "0" * 16, {}).write(tmp_path)
    user = CalibratedUser(tmp_path, loaded=loaded)
    found = foretold(GuardedUser(user, mend=False), [LOG])
    assert found is not None
    words = sum(len(TEXTS[i]) + 1 for i in (0, 2, 4))  # bytes, and the end of each turn
    assert found["per_token"]["n"] == words + len("go on\n") + len("satisfied\n")
    assert 4 < found["per_token"]["value"] < 7  # log(258) = 5.6
    assert found["left_out"] == 0


def test_both_kinds_of_user_are_scored_on_the_same_words(loaded: LoadedModel, tmp_path: Path) -> None:
    """Whether the last message of a log without an end was a farewell nobody knows, so both leave it out."""
    CalibrationNote("MathChat", "{{ task.instruction }}", 32, "tiny", "0" * 16, {}).write(tmp_path)
    users = (CalibratedUser(tmp_path, loaded=loaded), PromptedUser(LocalChat(loaded), "MathChat", template="Write."))
    for stop in (None, StopReason.USER_SATISFIED):
        first, second = (foretold(user, [replace(LOG, stop=stop)]) for user in users)
        assert first is not None
        assert second is not None
        words = sum(len(TEXTS[i]) for i in ((0, 2, 4) if stop else (0, 2)))
        assert first["bits_per_byte"]["n"] == second["bits_per_byte"]["n"] == words


def test_a_scripted_user_has_none() -> None:
    assert foretold(ScriptedMathUser("default"), [LOG]) is None
