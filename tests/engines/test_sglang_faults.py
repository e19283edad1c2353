"""What goes wrong between an engine and its server: nothing lost, nothing doubled, every error with its fix."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from duologue.engines import Completion, RowsError, Sampling, SGLangEngine
from duologue.errors import DuologueError
from tests.engines.sglang_standin import FAULTS, StandIn, on_loopback, standin

STOPS = [1, 2]
PROMPTS = [[3 + i, 5, 7] for i in range(6)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    on_loopback(monkeypatch)
    with standin() as running:
        yield running


def generate(engine: SGLangEngine, prompts: list[list[int]] = PROMPTS) -> list[Completion]:
    return engine.generate(prompts, Sampling(6), STOPS, range(len(prompts)))


@pytest.fixture
def undisturbed(server: StandIn) -> list[Completion]:
    rows = generate(SGLangEngine(server.url))
    server.bodies.clear()
    server.answered.clear()
    return rows


@pytest.mark.parametrize("fault", [*FAULTS, "silence"])
def test_a_passing_fault_changes_nothing(
    server: StandIn, undisturbed: list[Completion], pauses: list[float], fault: str
) -> None:
    engine = SGLangEngine(server.url, timeout=0.5 if fault == "silence" else 20)
    server.faults.extend([fault] * 3)
    assert generate(engine) == undisturbed
    assert (len(pauses), engine.retried, len(server.bodies)) == (3, 3, 9)
    assert engine.stats.completions == len(set(server.answered)) == 6  # each prompt was answered once


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lasting_fault_costs_only_its_own_prompt(
    server: StandIn, undisturbed: list[Completion], pauses: list[float], fault: str
) -> None:
    engine = SGLangEngine(server.url, retries=1, concurrency=1)
    server.faults.extend([fault] * 2)  # meets the first prompt twice
    with pytest.raises(RowsError, match=r"^1 of 6 prompts got no completion. .* after 2 attempts.*\.$") as caught:
        generate(engine)
    assert caught.value.rows[1:] == undisturbed[1:]
    assert isinstance(caught.value.rows[0], DuologueError)
    assert generate(engine) == undisturbed


def test_pauses_double_up_to_a_limit_with_jitter(server: StandIn, pauses: list[float]) -> None:
    server.faults.extend(["500"] * 8)
    generate(SGLangEngine(server.url), PROMPTS[:1])
    for pause, middle in zip(pauses, (0.5, 1, 2, 4, 8, 10, 10, 10), strict=True):
        assert middle * 0.5 <= pause <= middle * 1.5


def test_a_dead_server_is_left_alone_after_a_few_requests(
    server: StandIn, undisturbed: list[Completion], pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SGLangEngine(server.url, retries=1, concurrency=1)
    server.kill()
    with pytest.raises(RowsError, match=r"6 of 6.*cannot be reached after 2 attempts.*Start the server") as caught:
        generate(engine)
    assert len(pauses) == 4  # the last two prompts were not even tried
    assert str(caught.value.rows[-1]).startswith("4 requests in a row got no answer")
    assert str(caught.value.rows[-1]).endswith("Bring the server back, then go on.")
    server.start()
    monkeypatch.setattr("duologue.engines.http._REST", 0.0)
    with pytest.raises(RowsError):
        generate(engine)  # the rest of five seconds is not over
    engine._http._opens_at = 0.0
    assert generate(engine) == undisturbed


def test_a_server_that_is_killed_and_restarted_in_mid_turn(
    server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The restarted server has lost the adapter; it is loaded once more, and the turn ends as if nothing had been."""
    monkeypatch.setattr("duologue.engines.http._PAUSE", 0.1)
    (tmp_path / "adapter_config.json").write_text("{}")
    engine = SGLangEngine(server.url, concurrency=4)
    engine.sync_adapter(tmp_path, 5)
    wanted = generate(engine, PROMPTS * 4)
    answers, killed = iter(range(100)), threading.Event()

    def kill_after_a_few() -> None:
        if next(answers) == 7 and not killed.is_set():
            killed.set()
            server.kill()
            threading.Timer(0.3, server.start).start()

    server.after = kill_after_a_few
    assert generate(engine, PROMPTS * 4) == wanted
    assert {row.version for row in wanted} == {5}
    assert (killed.is_set(), engine.stats.restored) == (True, 1)
    assert engine.stats.completions == 2 * 24


def test_no_server_no_engine(server: StandIn) -> None:
    server.kill()
    with pytest.raises(DuologueError, match=r"cannot be reached at the first attempt.*Start the server, or check the"):
        SGLangEngine(server.url)


def test_a_refused_request_is_not_repeated(server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SGLangEngine(server.url)
    monkeypatch.setattr(server, "generate", lambda body: (400, {"error": {"message": "bad request"}}))
    with pytest.raises(RowsError, match=r"400: 'bad request'\. Correct the request, or look into the server's log\.$"):
        generate(engine, PROMPTS[:2])
    assert len(server.bodies) == 2


def test_a_sync_that_was_answered_into_the_void_is_no_error(
    server: StandIn, tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    engine, plain, lost = SGLangEngine(server.url), server.load_lora_adapter, iter([True])

    def answer(body: dict[str, str]) -> tuple[int, object]:
        done = plain(body)
        return (500, "lost") if next(lost, False) else done

    monkeypatch.setattr(server, "load_lora_adapter", answer)
    engine.sync_adapter(tmp_path, 1)
    assert [row.version for row in generate(engine, PROMPTS[:1])] == [1]


def test_an_interrupted_caller_leaves_nothing_running(server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SGLangEngine(server.url)
    server.faults.extend(["silence"] * 6)

    class Interrupted:
        def __init__(self, future: object) -> None:
            self.future = future

        def result(self) -> None:
            raise KeyboardInterrupt

        def cancel(self) -> None:
            self.future.cancel()  # type: ignore[attr-defined]

    import asyncio

    plain = asyncio.run_coroutine_threadsafe
    with monkeypatch.context() as patch:
        patch.setattr(asyncio, "run_coroutine_threadsafe", lambda c, loop: Interrupted(plain(c, loop)))
        with pytest.raises(KeyboardInterrupt):
            generate(engine)
    server.release.set()
    server.faults.clear()
    assert len(generate(engine)) == 6
    assert engine.stats.completions == 6
