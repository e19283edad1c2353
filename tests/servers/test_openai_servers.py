"""``OpenAIChat`` on real servers: chats, users, evaluation, schemas; and a server that dies or falls silent."""

import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import pytest
from typer.testing import CliRunner

from duologue.cli import app
from duologue.engines import OpenAIChat, RepliesError, Sampling, make_chat_model
from duologue.envs import MathChatVectorEnv
from duologue.errors import DuologueError
from duologue.simulators import PromptedUser, Simulator
from duologue.simulators.parsing import REPLY_SCHEMA
from duologue.trainers import ChatAgent, Rollout, Start
from duologue.types import Episode, Message, StopReason
from tests.servers.transformers_process import MISSING, TransformersProcess, make_model

pytestmark = pytest.mark.slow

TASKS = "math:level=1,split=test"
GREEDY = Sampling(max_new_tokens=12, temperature=0)


class Served(Protocol):
    """A running server."""

    url: str
    """Without a path."""


class Kind(NamedTuple):
    """What servers differ in."""

    fixture: str
    takes_schemas: bool
    checks_names: bool
    heeds_schemas: bool = False


KINDS = [
    Kind("transformers_server", takes_schemas=True, checks_names=True),  # takes a schema, and does not heed it
    Kind("vllm_server", takes_schemas=True, checks_names=True, heeds_schemas=True),
    Kind("sglang_server", takes_schemas=False, checks_names=False),  # as it runs on CPU: without a grammar backend
]


@pytest.fixture(scope="package")
def transformers_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransformersProcess]:
    """A ``transformers serve`` of a tiny model."""
    if MISSING:
        pytest.skip(f"transformers serve needs {', '.join(MISSING)} (the extra dev)")
    server = TransformersProcess(
        make_model(tmp_path_factory.mktemp("tiny") / "tiny-llama"), tmp_path_factory.mktemp("serve") / "log"
    )
    try:
        server.start()
        yield server
    finally:
        server.end()


@pytest.fixture(params=KINDS, ids=lambda kind: kind.fixture)
def kind(request: pytest.FixtureRequest) -> Kind:
    chosen: Kind = request.param
    return chosen


@pytest.fixture
def server(kind: Kind, request: pytest.FixtureRequest) -> Served:
    running: Served = request.getfixturevalue(kind.fixture)
    return running


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def says(text: str) -> list[Message]:
    return [Message(role="user", content=text)]


def test_conversations_side_by_side_get_their_own_replies(server: Served) -> None:
    model = OpenAIChat(server.url, concurrency=3)
    asked = [says("Say hello."), [*says("What is 2 + 2?"), Message(role="assistant", content="4"), *says("Sure?")]]
    asked += [[Message(role="system", content="Be brief."), *says("Name a colour.")]]
    together = model.chat(asked, GREEDY, [0, 1, 2])
    assert all(together)
    assert len(set(together)) == 3
    assert together == [model.chat([conversation], GREEDY, [7])[0] for conversation in asked]


def test_a_model_is_found_and_chosen_by_name(server: Served) -> None:
    found = OpenAIChat(server.url)
    assert found.model in found.models()
    chosen = make_chat_model(f"{server.url}/v1#{found.model}")
    assert chosen.signature == found.signature == f"{found.model}@{server.url}/v1"
    assert chosen.chat([says("hi")], GREEDY, [0]) == found.chat([says("hi")], GREEDY, [0])


def test_an_unknown_model(server: Served, kind: Kind) -> None:
    unknown = OpenAIChat(server.url, "no-such-model")
    if not kind.checks_names:
        assert unknown.chat([says("hi")], GREEDY, [0]) == OpenAIChat(server.url).chat([says("hi")], GREEDY, [0])
        return
    with pytest.raises(DuologueError, match=r"answered 4\d\d: .*no-such-model") as caught:
        unknown.chat([says("hi")], GREEDY, [0])
    assert OpenAIChat(server.url).models()[0] in str(caught.value)


def test_a_schema_is_asked_for_and_never_in_the_way(server: Served, kind: Kind) -> None:
    model = OpenAIChat(server.url)
    for _ in range(2):
        replies = model.chat_to_schema([says("Reply in JSON."), says("hi")], GREEDY, [0, 1], REPLY_SCHEMA)
        assert [reply.taken for reply in replies] == [kind.takes_schemas] * 2
        assert all(reply.text for reply in replies)


def test_a_schema_that_is_heeded(server: Served, kind: Kind) -> None:
    if not kind.heeds_schemas:
        pytest.skip("this server has no grammar")
    schema = {
        "type": "object",
        "properties": {"act": {"enum": ["ask", "stop"]}, "sure": {"type": "boolean"}},
        "required": ["act", "sure"],
        "additionalProperties": False,
    }
    replies = OpenAIChat(server.url).chat_to_schema([says("hi"), says("ho")], Sampling(64), [0, 1], schema)
    for reply in replies:  # of a model with random weights
        told = json.loads(reply.text)
        assert told["act"] in ("ask", "stop")
        assert isinstance(told["sure"], bool)


def test_a_prompted_user_from_its_spec(server: Served) -> None:
    env = gym.make("MathChat-v0", simulator=f"prompted:{server.url}/v1", tasks=TASKS, max_turns=2)
    inner: Any = env.unwrapped
    inner.parts.dynamics.simulator.user.sampling = Sampling(
        max_new_tokens=24
    )  # not the shipped cap: some servers are slow
    text, info = env.reset(seed=3)
    said, ended = [text], False
    while not ended:
        text, _, terminated, truncated, info = env.step("Which numbers do you have?")
        said += [text] if text else []
        ended = terminated or truncated
    assert info["scored"], info.get("error")
    assert StopReason(info["stop_reason"]) in (
        StopReason.TURN_LIMIT,
        StopReason.USER_SATISFIED,
        StopReason.USER_GAVE_UP,
    )
    assert all(said)
    assert [m["content"] for m in info["messages"] if m["role"] == "user"][: len(said)] == said


def test_evaluate_an_agent_behind_a_server(server: Served, tmp_path: Path) -> None:
    arguments = ["evaluate", "MathChat-v0", "--agent", server.url, "--episodes", "2", "--max-turns", "1"]
    result = CliRunner().invoke(app, [*arguments, "--max-tokens-per-turn", "8", "--output", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in (tmp_path / "out" / "episodes.jsonl").read_text().splitlines()]
    episodes = [Episode.from_json(row) for row in rows]
    assert [(e.reward in (0.0, 1.0), e.error, e.n_turns) for e in episodes] == [(True, None, 1)] * 2
    assert all(e.played[-1]["content"] for e in episodes)


def played(agent: Any = None, user: Simulator | str = "scripted") -> list[Episode]:
    """Two dialogues side by side."""
    env = MathChatVectorEnv(2, simulator=user, tasks=TASKS, max_turns=2)
    return Rollout(env, agent).play([Start(0), Start(1)])


def test_a_server_killed_amid_calls_and_started_again(transformers_server: TransformersProcess) -> None:
    server, long = transformers_server, Sampling(max_new_tokens=400)
    patient, hasty = (OpenAIChat(server.url, retries=retries) for retries in (30, 0))
    begun = server.requests()
    with ThreadPoolExecutor(2) as pool:
        lasting = pool.submit(patient.chat, [says(f"Number {i}") for i in range(4)], long, range(4))
        failing = pool.submit(played, ChatAgent(hasty, long))
        server.wait_for_requests(begun + 3)  # so that each of the two has one under way or waiting
        server.signal(signal.SIGKILL)
        for episode in failing.result(60):
            assert (episode.stop_reason, episode.reward) == (StopReason.POLICY_ERROR, None)
            assert "cannot be reached at the first attempt" in str(episode.error)
            assert str(episode.error).endswith("Start the server, or check the URL.")
        with pytest.raises(
            DuologueError, match=r"cannot be reached.*ConnectError.*Start the server, or check the URL\.$"
        ):
            OpenAIChat(server.url, retries=0)
        for episode in played(ChatAgent(hasty, long), PromptedUser(hasty, "MathChat")):
            assert (episode.stop_reason, episode.reward) == (StopReason.SIMULATOR_ERROR, None)
            assert "Start the server, or check the URL." in str(episode.error)
        server.start(wait=False)
        replies = lasting.result(120)
    assert [len(reply) for reply in replies] == [400] * 4  # whole replies, one each
    assert patient._http.retried >= 1
    assert len(hasty.chat([says("hi")], GREEDY, [0])) == 1  # the same object goes on


def test_a_server_that_listens_and_is_silent(transformers_server: TransformersProcess) -> None:
    model = OpenAIChat(transformers_server.url, timeout=1, retries=0)
    transformers_server.signal(signal.SIGSTOP)
    try:
        with pytest.raises(RepliesError, match=r"2 of 2 .*did not answer in time.*Raise timeout, or lower"):
            model.chat([says("hi"), says("ho")], GREEDY, [0, 1])
        for episode in played(ChatAgent(model, GREEDY)):
            assert (episode.stop_reason, episode.reward) == (StopReason.POLICY_ERROR, None)
            assert "did not answer in time" in str(episode.error)
    finally:
        transformers_server.signal(signal.SIGCONT)
    assert len(model.chat([says("hi")], GREEDY, [0])) == 1
