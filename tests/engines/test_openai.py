"""OpenAIChat against a real HTTP server on this machine, faults included."""

import gc
import json
import threading
import time
from typing import Any

import pytest

from duologue.engines import OpenAIChat, Sampling
from duologue.errors import DuologueError
from duologue.types import Message
from tests.engines.openai_standin import Answer, Server, ask, say

KEY = "sk-very-secret-0123456789"


def test_sends_messages_and_sampling(server: Server) -> None:
    model = OpenAIChat(server.url, "m")
    conversation = [Message(role="system", content="Be brief."), Message(role="user", content="hé <|im_end|>")]
    assert model.chat([conversation], Sampling(max_new_tokens=7, temperature=0.25), [2**40 + 5]) == ["hello"]
    assert server.bodies == [{"model": "m", "messages": conversation, "temperature": 0.25, "max_tokens": 7, "seed": 5}]
    assert server.paths == ["/v1/chat/completions"]


def test_replies_stand_in_the_order_of_the_conversations(server: Server) -> None:
    gate = threading.Barrier(4, timeout=10)

    def answer(n: int, body: dict[str, Any]) -> Answer:
        gate.wait()  # passes only if four requests are under way at once
        return say(body["messages"][-1]["content"].upper())

    server.answer = answer
    texts = [f"text {i}" for i in range(8)]
    assert ask(OpenAIChat(server.url, "m", concurrency=4), texts) == [text.upper() for text in texts]


def test_connections_are_reused(server: Server) -> None:
    model = OpenAIChat(server.url, "m", concurrency=1)
    for _ in range(3):
        ask(model, ["a", "b"])
    assert (len(server.bodies), len(server.ports)) == (6, 1)


def test_finds_the_model_that_is_served(server: Server) -> None:
    model = OpenAIChat(server.url)
    assert model.signature == f"served-model@{server.url}"
    ask(model)
    assert server.bodies[0]["model"] == "served-model"


@pytest.mark.parametrize("suffix", ["", "/", "/v1/", "/v1/chat/completions"])
def test_addresses_are_completed(server: Server, suffix: str) -> None:
    ask(OpenAIChat(server.url.removesuffix("/v1") + suffix, "m"))
    assert server.paths == ["/v1/chat/completions"]


def test_no_content_is_an_empty_reply(server: Server) -> None:
    server.answer = lambda n, body: say(None)
    assert ask(OpenAIChat(server.url, "m")) == [""]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_passing_failures_are_tried_again(server: Server, pauses: list[float], status: int) -> None:
    server.answer = lambda n, body: (status, "busy") if n < 2 else say("at last")
    assert ask(OpenAIChat(server.url, "m")) == ["at last"]
    assert 0.25 <= pauses[0] <= 0.75
    assert 0.5 <= pauses[1] <= 1.5


def test_a_dropped_connection_is_tried_again(server: Server, pauses: list[float]) -> None:
    server.answer = lambda n, body: None if n == 0 else say("again")
    assert ask(OpenAIChat(server.url, "m")) == ["again"]
    assert len(pauses) == 1


def test_retries_are_bounded(server: Server, pauses: list[float]) -> None:
    server.answer = lambda n, body: (429, "slow down")
    with pytest.raises(DuologueError, match=r"429: 'slow down' after 3 attempts\. Wait, or lower concurrency\.$"):
        ask(OpenAIChat(server.url, "m"))
    assert (len(server.bodies), len(pauses)) == (3, 2)


def test_what_cannot_pass_is_not_tried_again(server: Server, pauses: list[float]) -> None:
    server.answer = lambda n, body: (400, json.dumps({"error": {"message": "context length exceeded"}}))
    with pytest.raises(DuologueError, match=r"400: 'context length exceeded'.*Correct the request"):
        ask(OpenAIChat(server.url, "m"))
    assert (len(server.bodies), pauses) == (1, [])


def test_unknown_model_names_the_nearest(server: Server) -> None:
    server.answer = lambda n, body: (404, json.dumps({"error": "no such model"}))
    with pytest.raises(DuologueError, match=r"404: 'no such model'. Did you mean 'served-model'\?"):
        ask(OpenAIChat(server.url, "serve-model"))


def test_a_model_that_is_served_is_no_guess_at_itself(server: Server) -> None:
    server.answer = lambda n, body: (404, json.dumps({"detail": "Not Found"}))
    with pytest.raises(DuologueError, match=r"404: 'Not Found'. Check the URL and the model's name\.$"):
        ask(OpenAIChat(server.url, "served-model"))


@pytest.mark.parametrize(
    "said", ["<html>welcome</html>", '{"choices": [', '{"choices": []}', '{"error": 1}', "[1]", "3"]
)
def test_garbage_is_an_error_with_its_fix(server: Server, pauses: list[float], said: str) -> None:
    server.answer = lambda n, body: (200, said)
    with pytest.raises(DuologueError, match="Check that"):
        ask(OpenAIChat(server.url, "m"))


@pytest.mark.parametrize("listed", [(200, '{"data": []}'), (200, "{}"), (200, '{"data": [{"id": 3}, 7]}')])
def test_a_server_without_models(server: Server, listed: Answer) -> None:
    server.listed = listed
    with pytest.raises(DuologueError, match=r"lists no models. Name one: http://.*#MODEL"):
        OpenAIChat(server.url)


def test_refused_connection(server: Server, pauses: list[float]) -> None:
    server.http.server_close()
    with pytest.raises(
        DuologueError, match=r"cannot be reached after 3 attempts.*Start the server, or check the URL\.$"
    ):
        OpenAIChat(server.url)
    assert len(pauses) == 2


def test_a_server_that_hangs(server: Server, pauses: list[float]) -> None:
    release = threading.Event()

    def answer(n: int, body: dict[str, Any]) -> Answer:
        release.wait(20)
        return say("too late")

    server.answer = answer
    try:
        with pytest.raises(DuologueError, match=r"did not answer in time after 2 attempts\. Raise timeout"):
            ask(OpenAIChat(server.url, "m", timeout=0.2, retries=1))
    finally:
        release.set()


def test_the_key_is_sent_and_never_shown(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    server.answer = lambda n, body: (401, json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}))
    model = OpenAIChat(server.url, "m", api_key_env="MY_KEY")
    with pytest.raises(DuologueError, match=r"401.*valid key into the environment variable MY_KEY\.$") as caught:
        ask(model)
    assert server.keys == [f"Bearer {KEY}"]
    shown = [
        str(caught.value),
        repr(caught.value),
        repr(model),
        model.signature,
        repr(vars(model)),
        repr(vars(model._http)),
    ]
    assert not any(KEY in text for text in shown)


@pytest.mark.parametrize("key", ["sk-ključ", "sk-a\nb", "sk-\x00"])
def test_an_impossible_key_is_not_repeated(server: Server, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    if "\x00" in key:
        monkeypatch.setattr("os.environ", {"OPENAI_API_KEY": key})
    else:
        monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(DuologueError, match="OPENAI_API_KEY has characters that no key can have") as caught:
        ask(OpenAIChat(server.url, "m"))
    assert key not in repr(caught.value)
    assert server.bodies == []


def test_without_a_key_none_is_sent(server: Server) -> None:
    ask(OpenAIChat(server.url, "m"))
    assert server.keys == [None]


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host/v1", "", "http://", "http://host:port/v1", "model"])
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(DuologueError, match=r"is no URL\. Write it like http://localhost:8000/v1"):
        OpenAIChat(url, "m")


@pytest.mark.parametrize("url", ["http://me:hunter2@host/v1", "http://host/v1?key=hunter2"])
def test_secrets_in_a_url_are_refused_unseen(url: str) -> None:
    with pytest.raises(DuologueError, match="Leave them out") as caught:
        OpenAIChat(url, "m")
    assert "hunter2" not in str(caught.value)


def test_impossible_numbers() -> None:
    for bad in ({"concurrency": 0}, {"retries": -1}, {"timeout": 0}):
        with pytest.raises(DuologueError, match="Correct these"):
            OpenAIChat("http://host/v1", "m", **bad)  # type: ignore[arg-type]


def test_dropping_the_model_closes_its_connections(server: Server) -> None:
    model = OpenAIChat(server.url, "m")
    ask(model)
    ((client, _),) = model._http._transports.values()
    del model
    gc.collect()
    deadline = time.monotonic() + 10
    while not client.is_closed and time.monotonic() < deadline:  # closed by the background thread
        time.sleep(0.01)
    assert client.is_closed
