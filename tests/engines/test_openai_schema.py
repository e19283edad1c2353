"""What OpenAI-compatible servers differ in: schemas, names of fields, thought apart from words."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from duologue.engines import OpenAIChat, RepliesError, Sampling, SchemaChatModel, SchemaReply
from duologue.errors import DuologueError
from duologue.simulators import PromptedUser
from duologue.simulators.parsing import REPLY_SCHEMA, parse_turn
from duologue.trainers.agents import ChatAgent
from duologue.trainers.conversation import Conversation
from duologue.types import Dialogue, Message, Task
from tests.engines.openai_standin import Answer, Server, ask, say

REFUSED = "'response_format' of type 'json_schema' is not supported with this model."
SENT = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": REPLY_SCHEMA}}


def refusing(field: str, status: int, said: str) -> Callable[[int, dict[str, Any]], Answer]:
    """A server that refuses requests with a field, and says back what it is asked in others."""
    error = json.dumps({"error": {"message": said}})
    return lambda n, body: (status, error) if field in body else say(body["messages"][-1]["content"])


def ask_for_json(model: OpenAIChat, *texts: str, schema: Mapping[str, Any] = REPLY_SCHEMA) -> list[SchemaReply]:
    conversations = [[Message(role="user", content=text)] for text in texts]
    return model.chat_to_schema(conversations, Sampling(), range(len(texts)), schema)


def message(**fields: Any) -> Answer:
    return 200, json.dumps({"choices": [{"message": {"role": "assistant", **fields}, "finish_reason": "length"}]})


def test_a_schema_is_sent_as_openai_wants_it(server: Server) -> None:
    model = OpenAIChat(server.url, "m")
    assert isinstance(model, SchemaChatModel)
    assert ask_for_json(model, "a", "b") == [SchemaReply("hello", True)] * 2
    ask(model)
    assert [body.get("response_format") for body in server.bodies] == [SENT, SENT, None]
    schema: dict[str, Any] = dict(REPLY_SCHEMA)
    assert schema["required"] == list(schema["properties"])  # as strict schemas have to
    assert schema["additionalProperties"] is False


def test_a_reply_that_keeps_to_the_schema_is_parsed() -> None:
    row = {"thought": "hm", "message": "no", "done": False, "satisfied": False}
    assert list(row) == list(REPLY_SCHEMA["properties"])
    assert parse_turn(json.dumps(row)).text == "no"
    assert not parse_turn(json.dumps(row)).notes


@pytest.mark.parametrize("status", [400, 404, 422, 501])
def test_a_server_without_schemas_is_asked_without_from_then_on(
    server: Server, pauses: list[float], status: int
) -> None:
    server.answer = refusing("response_format", status, REFUSED)
    model = OpenAIChat(server.url, "m")
    texts = [f"text {i}" for i in range(6)]
    assert ask_for_json(model, *texts) == [SchemaReply(text, False) for text in texts]
    assert len(server.bodies) == 12  # each once with and once without
    assert ask_for_json(model, "again") == [SchemaReply("again", False)]
    assert len(server.bodies) == 13
    assert pauses == []


def test_a_schema_that_is_refused_is_the_only_one_given_up(server: Server) -> None:
    plain = {"type": "object", "properties": {"text": {"type": "string"}}}

    def answer(n: int, body: dict[str, Any]) -> Answer:
        asked = body.get("response_format")
        return (400, "Invalid schema for response_format 'reply'") if asked == SENT else say("{}")

    server.answer = answer
    model = OpenAIChat(server.url, "m")
    assert ask_for_json(model, "a") == [SchemaReply("{}", False)]
    assert ask_for_json(model, "a", schema=plain) == [SchemaReply("{}", True)]
    assert ask_for_json(model, "a", schema=dict(reversed(plain.items()))) == [SchemaReply("{}", True)]
    assert ask_for_json(model, "a") == [SchemaReply("{}", False)]
    assert ["response_format" in body for body in server.bodies] == [True, False, True, True, False]


@pytest.mark.parametrize(
    "said",
    [
        "This model does not support response format `json_schema`.",
        "[{'type': 'extra_forbidden', 'loc': ['body', 'response_format']}]",
        "Failed to parse grammar",
        "Structured outputs are not enabled.",
    ],
)
def test_words_in_which_servers_refuse_a_schema(server: Server, said: str) -> None:
    server.answer = refusing("response_format", 400, said)
    assert ask_for_json(OpenAIChat(server.url, "m"), "hi") == [SchemaReply("hi", False)]


def test_a_schema_is_not_blamed_for_what_it_is_not_named_in(server: Server) -> None:
    server.answer = lambda n, body: (400, json.dumps({"error": {"message": "context length exceeded"}}))
    model = OpenAIChat(server.url, "m")
    with pytest.raises(RepliesError, match=r"context length exceeded'\. Correct the request"):
        ask_for_json(model, "too long")
    assert len(server.bodies) == 1
    server.answer = lambda n, body: say("{}")
    assert ask_for_json(model, "short") == [SchemaReply("{}", True)]


def test_a_schema_is_not_given_up_for_what_fails_without_it_too(server: Server) -> None:
    server.answer = lambda n, body: (400, "the schema of this database is broken")
    model = OpenAIChat(server.url, "m")
    with pytest.raises(RepliesError, match="database"):
        ask_for_json(model, "hi")
    assert len(server.bodies) == 2
    server.answer = lambda n, body: say("{}")
    assert ask_for_json(model, "hi") == [SchemaReply("{}", True)]


def test_a_wrong_key_is_no_refusal_of_the_schema(server: Server) -> None:
    server.answer = lambda n, body: (401, "who are you?")
    with pytest.raises(DuologueError, match="valid key"):
        ask_for_json(OpenAIChat(server.url, "m"), "hi")
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("field", "status", "said", "sent"),
    [
        ("max_tokens", 400, "Unsupported parameter: use 'max_completion_tokens' instead.", {"seed", "new"}),
        ("seed", 422, "Extra inputs are not permitted: ['body', 'seed']", {"max_tokens"}),
    ],
)
def test_fields_that_a_server_refuses_by_name(
    server: Server, field: str, status: int, said: str, sent: set[str]
) -> None:
    server.answer = refusing(field, status, said)
    model = OpenAIChat(server.url, "m")
    assert ask_for_json(model, "once") == [SchemaReply("once", True)]
    assert ask(model, ["twice"], Sampling(max_new_tokens=9)) == ["twice"]
    assert len(server.bodies) == 3
    caps = {"max_tokens": "max_tokens", "max_completion_tokens": "new", "seed": "seed"}
    assert {caps[name] for name in server.bodies[-1] if name in caps} == sent
    assert server.bodies[-1].get("max_completion_tokens", 9) == 9


def test_a_server_that_refuses_everything_by_turns(server: Server) -> None:
    """One field at a time is refused, as servers do that stop at the first fault."""

    def answer(n: int, body: dict[str, Any]) -> Answer:
        faults = {"max_tokens": "use max_completion_tokens", "response_format": "no schema", "seed": "no seed"}
        for field, said in faults.items():
            if field in body:
                return 400, said
        return say("at last")

    server.answer = answer
    model = OpenAIChat(server.url, "m")
    assert ask_for_json(model, "hi") == [SchemaReply("at last", False)]
    assert len(server.bodies) == 4
    assert ask(model) == ["at last"]
    assert len(server.bodies) == 5


def test_a_field_that_is_not_named_is_not_given_up(server: Server) -> None:
    server.answer = lambda n, body: (400, "temperature must be 1; the seedling is fine")
    with pytest.raises(DuologueError, match=r"temperature must be 1.*the sampling\.$"):
        ask(OpenAIChat(server.url, "m"))
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"content": None, "reasoning_content": "well, let me see"},
        {"content": "", "reasoning": "well, let me see"},
        {"reasoning_content": "well, let me see"},
    ],
)
def test_thought_without_words_is_an_error(server: Server, fields: dict[str, Any]) -> None:
    server.answer = lambda n, body: message(**fields) if body["messages"][-1]["content"] == "hard" else say("yes")
    with pytest.raises(RepliesError, match=r"1 of 2 .*m thought and then said nothing\. Raise the cap") as caught:
        ask(OpenAIChat(server.url, "m"), ["easy", "hard"])
    assert caught.value.rows[0] == "yes"
    assert isinstance(caught.value.rows[1], DuologueError)


def test_an_agent_loses_the_reply_that_failed_and_no_other(server: Server) -> None:
    server.answer = lambda n, body: (400, "no") if body["messages"][-1]["content"] == "bad" else say("yes")
    agent = ChatAgent(OpenAIChat(server.url, "m"), Sampling())
    good, bad = (Conversation((Message(role="user", content=text),)) for text in ("good", "bad"))
    first, second = agent.act([good, bad])
    assert (first.text, first.error) == ("yes", None)
    assert second.error is not None
    assert second.error.endswith("the sampling.")
    assert len(server.bodies) == 2


def test_hidden_thought_without_words_is_an_error(server: Server) -> None:
    _, text = message(content="")
    usage = {"completion_tokens": 256, "completion_tokens_details": {"reasoning_tokens": 256}}
    server.answer = lambda n, body: (200, json.dumps({**json.loads(text), "usage": usage}))
    with pytest.raises(DuologueError, match="thought and then said nothing"):
        ask(OpenAIChat(server.url, "m"))


def test_thought_beside_words_is_left_out(server: Server) -> None:
    server.answer = lambda n, body: message(content="four", reasoning_content="two and two")
    assert ask(OpenAIChat(server.url, "m")) == ["four"]


def test_a_refusal_is_what_the_model_says(server: Server) -> None:
    server.answer = lambda n, body: message(content=None, refusal="I cannot help with that.")
    assert ask(OpenAIChat(server.url, "m")) == ["I cannot help with that."]


def test_an_unknown_model_that_is_refused_with_400(server: Server) -> None:
    """As ``transformers serve`` does, in FastAPI's form."""
    said = "Server is pinned to 'served-model'; requested 'nope'."
    server.answer = lambda n, body: (400, json.dumps({"detail": said}))
    with pytest.raises(DuologueError, match=r"pinned to 'served-model'.*Choose one of: 'other', 'served-model'\.$"):
        ask(OpenAIChat(server.url, "nope"))


@pytest.mark.parametrize("listed", [(200, '{"data": []}'), (500, "no"), (200, '{"data": [{"id": "nope"}]}')])
def test_a_refusal_that_names_the_model_where_no_list_helps(server: Server, listed: Answer) -> None:
    server.listed = listed
    server.answer = lambda n, body: (400, "The model nope is tired.")
    with pytest.raises(DuologueError, match=r"nope is tired.*Correct the request: [^?]*sampling\.$"):
        ask(OpenAIChat(server.url, "nope"))


def test_prompted_users_tell_servers_their_schema_and_say_so(server: Server, math_dialogue: Dialogue) -> None:
    server.answer = refusing("response_format", 400, REFUSED)
    told = PromptedUser(OpenAIChat(server.url, "m"), "MathChat", template="{}")
    (turn,) = told.respond([math_dialogue])
    assert turn.notes["schema_refused"] == 1.0
    server.answer = lambda n, body: say('{"thought": "", "message": "Hi", "done": false, "satisfied": false}')
    user = PromptedUser(OpenAIChat(server.url, "m"), "MathChat", template="{}")
    (turn,) = user.respond([math_dialogue])
    assert (turn.text, dict(turn.notes)) == ("Hi", {})
    assert server.bodies[-1]["response_format"] == SENT
    assert "|schema:" in user.signature
    assert user.signature == told.signature  # known before the first call, and the same after it


@pytest.fixture
def math_dialogue() -> Dialogue:
    return Dialogue(Task("t", "What is two and two?", "4"), 0)
