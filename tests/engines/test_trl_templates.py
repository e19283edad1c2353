"""The templates that TRL ships, against the check of ``ChatFormat``."""

import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from duologue.engines.chat import ChatFormat
from duologue.errors import DuologueError
from duologue.types import Message

FOLDER = Path(str((find_spec("trl") or pytest.skip("trl is not installed")).origin)).parent / "chat_templates"
FILES = sorted(FOLDER.glob("*.jinja"))
TOKEN = re.compile(r"<[|\uff5c][^<>\s'\"]+>|<\w+\|>|</?\w+>|\[/?INST\]")
REFUSED = ["deepseek", "gptoss", "idefics3", "llava_next", "muse_glimmer", "nemotron", "smolvlm"]
REFUSED += ["qwen3_5_nothink.jinja", "qwen3_5_think.jinja", "qwen3_6.jinja"]
"""They open a reasoning block that older turns lose, address a channel before the reply, or take no plain strings."""
FORGETS_REASONING = ["glm4moe", "lfm2_2_5", "qwen3.jinja", "qwen3_5_nothink_training", "qwen3_8"]


def is_one_of(file: Path, names: list[str]) -> bool:
    return any(file.name.startswith(name) for name in names)


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def file(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture
def tokenizer(file: Path, all_tokens: list[str], make_tokenizer: Callable[..., PreTrainedTokenizerFast]) -> object:
    return make_tokenizer(file.read_text(encoding="utf-8"), [*all_tokens, "<bos>", "<eos>"], "<eos>", "<bos>")


@pytest.fixture(scope="session")
def all_tokens() -> list[str]:
    return sorted({token for file in FILES for token in TOKEN.findall(file.read_text(encoding="utf-8"))})


def test_the_verdict_agrees_with_a_direct_rendering(file: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    if is_one_of(file, REFUSED):
        with pytest.raises(DuologueError, match=r"changes earlier turns|cannot render user"):
            ChatFormat(tokenizer)
        return
    chat = ChatFormat(tokenizer)
    assert chat.report.user_turn_after_reasoning != is_one_of(file, FORGETS_REASONING)
    opening = str(tokenizer.decode(chat.opening_ids([Message(role="user", content="Hi there")])))
    # The rendering, cut where the policy writes, is the opening + filler + reply + what is appended to it.
    written = rendered(tokenizer, "Hi there", "It is fine.", "Thanks")
    head, found, tail = written.partition("It is fine.")
    assert found
    assert head.startswith(opening)
    assert re.fullmatch(r"\s*(<think>)?\s*(</think>)?\s*", head.removeprefix(opening))
    assert tail.lstrip() == tokenizer.decode([chat.end_of_turn_id, *chat.user_suffix_ids("Thanks")])


def rendered(tokenizer: PreTrainedTokenizerFast, first: str, reply: str, second: str) -> str:
    history = [
        {"role": "user", "content": first},
        {"role": "assistant", "content": reply},
        {"role": "user", "content": second},
    ]
    return str(tokenizer.apply_chat_template(history, tokenize=False, add_generation_prompt=True))


def test_trl_ships_templates() -> None:
    assert len(FILES) > 50
