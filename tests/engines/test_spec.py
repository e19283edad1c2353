"""Chat models by spec, and the package's lazy names."""

import subprocess
import sys

import pytest

import duologue.engines as engines
from duologue.engines import OpenAIChat, Sampling, make_chat_model
from duologue.errors import DuologueError
from duologue.types import Message


def test_a_url_with_a_model_is_a_server() -> None:
    model = make_chat_model("http://127.0.0.1:9/v1#org/name")  # a named model needs no look at the server
    assert isinstance(model, OpenAIChat)
    assert model.signature == "org/name@http://127.0.0.1:9/v1"


def test_an_empty_spec() -> None:
    with pytest.raises(DuologueError, match="Give a URL, a folder, a Hugging Face id, or 'default'"):
        make_chat_model(" ")


def test_importing_the_package_loads_no_torch() -> None:
    code = (
        "import sys, duologue.engines as e; e.Sampling, e.make_chat_model, e.OpenAIChat; "
        "print([m for m in ('torch', 'transformers') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_public_name_has_a_home() -> None:
    assert sorted(engines._HOMES) == sorted(engines.__all__)
    with pytest.raises(AttributeError, match="Nothing"):
        _ = engines.Nothing


@pytest.mark.slow
def test_the_default_model_chats() -> None:
    model = make_chat_model("default")
    assert model.signature.startswith("SmolLM2-135M-Instruct|")
    asked = [
        [
            Message(role="system", content="You are terse."),
            Message(role="user", content="What is the capital of France?"),
        ],
        [Message(role="user", content="Say hello.")],
    ]
    greedy = Sampling(max_new_tokens=16, temperature=0)
    together = model.chat(asked, greedy, [0, 1])
    assert "Paris" in together[0]
    assert not any("<|" in text for text in together)
    assert model.chat(asked[:1], greedy, [7]) == together[:1]
