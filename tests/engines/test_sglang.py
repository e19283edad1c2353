"""SGLangEngine against a stand-in that speaks SGLang's protocol on this machine."""

import math
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from duologue.engines import Completion, Sampling, SGLangEngine
from duologue.errors import DuologueError
from tests.engines.sglang_standin import StandIn, hashed_logits, log_softmax, on_loopback, standin

KEY = "sk-very-secret-0123456789"
PROMPTS = [[5, 6, 7], [8], list(range(3, 30))]
STOPS = [1, 2]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    on_loopback(monkeypatch)
    with standin() as running:
        yield running


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}")
    (tmp_path / "adapter" / "adapter_model.safetensors").write_text("weights")
    return tmp_path / "adapter"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    return tmp_path / "model"


def generate(engine: SGLangEngine, prompts: Sequence[Sequence[int]] = PROMPTS, **sampling: Any) -> list[Completion]:
    return engine.generate(prompts, Sampling(**{"max_new_tokens": 12, **sampling}), STOPS, range(len(prompts)))


def expected(
    prompt: Sequence[int], row: Completion, heat: float = 1.0, weights: str = "base", adapter: str | None = None
) -> list[float]:
    tokens, found = list(prompt), []
    for token in row.token_ids:
        found.append(float(log_softmax(hashed_logits(tokens, weights, adapter) / heat)[token]))
        tokens.append(token)
    return found


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0, 2.0])
def test_logprobs_are_those_of_the_scaled_distribution(server: StandIn, temperature: float) -> None:
    rows = generate(SGLangEngine(server.url), temperature=temperature)
    for prompt, row in zip(PROMPTS, rows, strict=True):
        assert row.logprobs == pytest.approx(expected(prompt, row, temperature or 1.0))
        assert row.finish == ("stop" if row.token_ids[-1] in STOPS else "length")
        assert row.finish == "stop" or len(row.token_ids) == 12
    assert {row.finish for row in generate(SGLangEngine(server.url), [[i] for i in range(3, 23)])} == {"stop", "length"}


def test_nothing_is_left_to_the_servers_defaults(server: StandIn) -> None:
    engine = SGLangEngine(server.url)
    engine.generate([[5, 6, 7]], Sampling(4), STOPS, [2**40 + 9])
    (body,) = server.bodies
    wanted = {"max_new_tokens": 4, "temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0}
    wanted |= {"repetition_penalty": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0}
    assert body["sampling_params"] == {**wanted, "stop_token_ids": STOPS, "sampling_seed": 9}
    assert (body["input_ids"], body["return_logprob"], "lora_path" in body) == ([5, 6, 7], True, False)


def test_rows_come_back_in_order_and_by_seed(server: StandIn) -> None:
    engine = SGLangEngine(server.url)
    many = [[3 + i % 30, 5] for i in range(40)]
    first = engine.generate(many, Sampling(8), STOPS, range(40))
    again = engine.generate(many[::-1], Sampling(8), STOPS, range(39, -1, -1))
    assert [row.token_ids for row in first] == [row.token_ids for row in again[::-1]]


def test_connections_are_kept(server: StandIn) -> None:
    engine = SGLangEngine(server.url, concurrency=2)
    for _ in range(4):
        generate(engine, [[5], [6], [7], [8]])
    assert len(server.bodies) == 16
    assert len(server.ports) <= 2


def test_the_server_says_how_long_its_context_is(server: StandIn) -> None:
    engine = SGLangEngine(f"{server.url}/v1/")
    assert (engine.context_length, engine.version, engine.tokenizer_path) == (512, 0, "models/tiny")
    assert engine.signature == f"tiny@{server.url}"
    with pytest.raises(DuologueError, match=r"leaves no room.*lower max_new_tokens\.$"):
        generate(engine, [[3] * 501])
    with pytest.raises(DuologueError, match="Give one seed per prompt"):
        engine.generate([[3]], Sampling(), STOPS, [])
    assert server.bodies == []
    assert engine.generate([], Sampling(), STOPS, []) == []


def test_logprobs_without_temperature_are_found_out(server: StandIn) -> None:
    server.original_logprobs = True
    engine = SGLangEngine(server.url)
    generate(engine, temperature=1.0)  # no difference
    with pytest.raises(DuologueError, match=r"before temperature 0.5.*sample at temperature 1\.$"):
        generate(engine, temperature=0.5)


def test_turns_of_a_dialogue_share_a_session_and_hit_the_cache(server: StandIn) -> None:
    engine = SGLangEngine(server.url)
    rows = generate(engine, [[5, 6], [7, 8]])
    nexts = [[*p, *row.token_ids, 9, 10] for p, row in zip([[5, 6], [7, 8]], rows, strict=True)]
    assert engine.stats.cached_tokens == 0
    generate(engine, nexts)
    # A call's requests arrive in any order; those of one dialogue bear one name, and ids that a router can parse.
    by_prompt = {tuple(b["input_ids"]): s for b, s in zip(server.bodies, server.sessions, strict=True)}
    assert [by_prompt[tuple(n)] for n in nexts] == [by_prompt[5, 6], by_prompt[7, 8]]
    assert by_prompt[5, 6] != by_prompt[7, 8]
    assert all(b["rid"].startswith(f"{s}_t") for b, s in zip(server.bodies, server.sessions, strict=True))
    assert len({b["rid"] for b in server.bodies}) == 4
    assert engine.stats.cached_tokens == sum(2 + len(row.token_ids) for row in rows)
    assert engine.stats.prompt_tokens == 4 + sum(map(len, nexts))
    assert engine.stats.completions == 4


def test_adapters_are_loaded_by_version_and_the_last_one_is_dropped(server: StandIn, adapter: Path) -> None:
    engine = SGLangEngine(server.url)
    base = generate(engine)
    engine.sync_adapter(adapter, 3)
    rows = generate(engine)
    assert [row.version for row in base + rows] == [0, 0, 0, 3, 3, 3]
    assert rows[0].logprobs == pytest.approx(expected(PROMPTS[0], rows[0], adapter=str(adapter)))
    (first,) = server.adapters
    engine.sync_adapter(adapter, 4)
    (second,) = server.adapters
    assert first != second
    assert generate(engine)[0].version == engine.version == 4
    assert server.bodies[-1]["lora_path"] == second
    assert second.endswith("-v4")
    assert engine.signature.startswith(f"tiny@{server.url}|adapter|")


def test_the_cache_is_flushed_at_a_sync(server: StandIn, adapter: Path, model: Path) -> None:
    engine = SGLangEngine(server.url)
    generate(engine)
    engine.sync_adapter(adapter, 1)
    assert (server.calls[-1], server.seen) == ("/flush_cache", set())
    server.busy = True  # someone else's requests run
    engine.sync_adapter(adapter, 2)
    assert engine.stats.unflushed == 1
    with pytest.raises(DuologueError, match="Flush cache failed"):
        engine.flush()
    engine.sync_weights(model, 3)
    assert server.seen == set()


def test_weights_are_replaced_under_a_label(server: StandIn, model: Path, adapter: Path) -> None:
    engine = SGLangEngine(server.url)
    engine.sync_adapter(adapter, 1)
    engine.sync_weights(model, 7)
    rows = generate(engine)
    assert server.label.endswith("-v7")
    assert [row.version for row in rows] == [7, 7, 7]
    assert rows[1].logprobs == pytest.approx(expected(PROMPTS[1], rows[1], weights=str(model)))


@pytest.mark.parametrize("sync", ["sync_adapter", "sync_weights"])
def test_a_folder_without_weights_is_refused(server: StandIn, tmp_path: Path, sync: str) -> None:
    engine = SGLangEngine(server.url)
    with pytest.raises(DuologueError, match=r"Save one there first\.$"):
        getattr(engine, sync)(tmp_path, 1)
    assert (engine.version, server.calls) == (0, [])


def test_an_adapter_is_unloaded_and_comes_back_when_it_is_sampled_from(server: StandIn, adapter: Path) -> None:
    engine = SGLangEngine(server.url)
    engine.unload_adapter()
    assert server.calls == []  # there is none
    engine.sync_adapter(adapter, 1)
    before = generate(engine)
    engine.unload_adapter()
    assert server.adapters == {}
    assert (generate(engine), len(server.adapters), engine.stats.restored) == (before, 1, 1)
    engine.unload_adapter()
    with pytest.raises(DuologueError, match="not loaded"):
        engine.unload_adapter()


def test_what_a_router_does_not_pass_on_goes_to_each_of_its_workers(
    server: StandIn, adapter: Path, model: Path
) -> None:
    with standin() as second, standin() as gone:
        server.workers = [{"url": server.url, "is_healthy": True}, {"url": f"{second.url}/"}]
        server.workers.append({"url": gone.url, "is_healthy": False})
        engine = SGLangEngine(server.url)
        engine.sync_adapter(adapter, 1)
        assert list(server.adapters) == list(second.adapters) == [engine.weights.adapter]
        second.kill()
        second.start()
        engine.sync_adapter(adapter, 2)  # one worker has lost the last one, which is no fault
        assert list(server.adapters) == list(second.adapters) == [engine.weights.adapter]
        second.adapters.clear()
        generate(engine)  # nothing asks the second one here, so nothing is missed
        server.adapters.clear()
        assert {row.version for row in generate(engine)} == {2}
        assert list(server.adapters) == list(second.adapters) == [engine.weights.adapter]  # restored on both
        engine.sync_weights(model, 3)
        assert server.label == second.label == engine.weights.label
        assert server.calls.count("/flush_cache") == second.calls.count("/flush_cache") == 2
        assert not gone.calls


def test_a_router_whose_workers_still_register_is_waited_for(server: StandIn) -> None:
    server.workers = []
    with pytest.raises(DuologueError, match=r"no worker of it is up after 2 attempts\. Start its servers, or wait\.$"):
        SGLangEngine(server.url, retries=1)
    threading.Timer(0.2, lambda: setattr(server, "workers", [{"url": server.url}])).start()
    assert SGLangEngine(server.url).context_length == server.context


def test_a_server_alone_is_asked_once_whether_it_is_a_router(server: StandIn, adapter: Path) -> None:
    engine = SGLangEngine(server.url)
    engine.sync_adapter(adapter, 1)
    server.workers = [{"url": "http://127.0.0.1:1"}]
    engine.sync_adapter(adapter, 2)
    assert list(server.adapters) == [engine.weights.adapter]


def test_nobody_elses_adapter_is_unloaded(server: StandIn, adapter: Path, model: Path) -> None:
    server.adapters["user"] = "folder/of/user"
    SGLangEngine(server.url, adapter="user").unload_adapter()
    engine = SGLangEngine(server.url)
    engine.sync_adapter(adapter, 1)
    engine.sync_weights(model, 2)
    engine.unload_adapter()
    assert server.adapters == {"user": "folder/of/user"}


def test_what_the_server_cannot_load_leaves_the_policy_as_it_was(
    server: StandIn, adapter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SGLangEngine(server.url)
    engine.sync_adapter(adapter, 1)
    monkeypatch.setattr(server, "load_lora_adapter", lambda body: (400, {"success": False, "error_message": "rank 64"}))
    with pytest.raises(DuologueError, match=r"answered 400: 'rank 64'\. Correct the request"):
        engine.sync_adapter(adapter, 2)
    assert [row.version for row in generate(engine)] == [1, 1, 1]


def test_an_adapter_of_somebody_else_can_be_named(server: StandIn) -> None:
    server.adapters["user"] = "folder/of/user"
    policy, user = SGLangEngine(server.url), SGLangEngine(server.url, adapter="user")
    assert generate(policy)[0].logprobs != generate(user)[0].logprobs
    assert [b.get("lora_path") for b in server.bodies] == [None] * 3 + ["user"] * 3
    assert user.signature == f"tiny@{server.url}|user"
    with pytest.raises(DuologueError, match=r"3 of 3.*400: 'The following requested LoRA adapters are not loaded: no"):
        generate(SGLangEngine(server.url, adapter="nobody"))


def test_weights_of_somebody_else_are_refused(server: StandIn, model: Path) -> None:
    engine = SGLangEngine(server.url)
    server.label = "other"
    with pytest.raises(DuologueError, match=r"other weights than version 0.*or sync again\.$"):
        generate(engine)
    assert engine.stats.stale == 9
    engine.sync_weights(model, 1)
    server.label = "other"  # and this time it can be helped
    assert [row.version for row in generate(engine)] == [1, 1, 1]
    assert engine.stats.restored == 1


@pytest.mark.parametrize(("allow", "versions", "sampled_by"), [(0, [2], "model"), (1, [1], "base"), (2, [1], "base")])
def test_a_stale_answer_is_refused_or_carries_its_version(
    server: StandIn, model: Path, allow: int, versions: list[int], sampled_by: str
) -> None:
    engine = SGLangEngine(server.url, allow_stale=allow)
    engine.sync_weights(model, 1)
    old = server.label
    engine.sync_weights(model, 2)
    server.label, server.weights = old, "base"  # as if the update had not reached this worker
    (row,) = generate(engine, [[5, 6]])
    assert [row.version] == versions
    weights = str(model) if sampled_by == "model" else "base"
    assert row.logprobs == pytest.approx(expected([5, 6], row, weights=weights))
    assert (engine.stats.stale, engine.stats.restored) == ((1, 1) if allow == 0 else (0, 0))


def test_the_oldest_weights_of_a_completion_count(
    server: StandIn, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SGLangEngine(server.url, allow_stale=1)
    engine.sync_weights(model, 1)
    old, plain = server.label, server.generate
    engine.sync_weights(model, 2)

    def mixed(body: dict[str, Any]) -> tuple[int, Any]:
        status, answer = plain(body)
        spans = [{"version": old, "start": 0, "end": 1}, {"version": server.label, "start": 1, "end": 9}]
        answer["meta_info"]["weight_versions"] = spans
        return status, answer

    monkeypatch.setattr(server, "generate", mixed)
    assert generate(engine, [[5, 6]])[0].version == 1


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUOLOGUE_API_KEY", KEY)
    with standin(key=KEY) as server:
        engine = SGLangEngine(server.url)
        rows = generate(engine)
        server.key = "another"
        with pytest.raises(DuologueError, match=r"401.*\[key\].*environment variable DUOLOGUE_API_KEY\.$") as caught:
            generate(engine)
        shown = [str(caught.value), repr(caught.value), repr(engine), engine.signature, repr(vars(engine)), repr(rows)]
        shown += [repr(vars(engine._http)), repr(vars(engine._server)), repr(server.bodies)]
        assert not any(KEY in text for text in shown)


@pytest.mark.parametrize(
    "url", ["localhost:30000", "ftp://host", "", "http://me:hunter2@host", "http://host/?key=hunter2"]
)
def test_what_is_no_plain_url(url: str) -> None:
    with pytest.raises(DuologueError, match=r"Write it like http://127.0.0.1:30000|Leave them out") as caught:
        SGLangEngine(url)
    assert "hunter2" not in str(caught.value)


def test_a_server_of_another_kind(server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "get", lambda path: (404 if path == "/model_info" else 200, {}))
    with pytest.raises(DuologueError, match=r"does not say how long its context is\. Check that it is SGLang's\.$"):
        SGLangEngine(server.url)


def test_logprobs_are_finite(server: StandIn) -> None:
    assert all(math.isfinite(x) and x <= 0 for row in generate(SGLangEngine(server.url)) for x in row.logprobs)
