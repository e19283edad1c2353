"""The engine against a real SGLang server: its numbers, its versions, and what breaks between the two."""

import json
import signal
import threading
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from peft import LoraConfig, get_peft_model

from duologue.disk import DiskFullError
from duologue.engines import Completion, RowsError, Sampling, SGLangEngine, load_model
from duologue.engines.models import without_bars
from duologue.envs.tasks.lists import TaskList
from duologue.envs.vector_env import DialogueVectorEnv
from duologue.errors import DuologueError
from duologue.simulators import CalibratedUser, make_simulator
from duologue.simulators.calibrated_folder import CalibrationNote
from duologue.trainers import InteractiveConfig, InteractiveTrainer
from duologue.types import Dialogue, Task
from examples.sglang_cpu.process import SGLangProcess, free_port
from tests.engines.sglang_standin import on_loopback
from tests.servers.proxy import FAULTS, proxy
from tests.trainers.test_kill import die_everywhere

pytestmark = pytest.mark.slow
STOPS = [257]
PROMPTS = [[256, *range(40 + i, 60 + i)] for i in range(6)]
GREEDY = Sampling(6, 0.0)


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    on_loopback(monkeypatch)


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def pause(seconds: float) -> None:
        import asyncio

        await asyncio.sleep(min(seconds, 0.05))

    monkeypatch.setattr("duologue.engines.http._pause", pause)


def adapter_of(base: Path, folder: Path, seed: int) -> Path:
    """Save an adapter of random weights, which changes what the base says."""
    loaded = load_model(str(base), dtype="float32", device="cpu")
    with torch.random.fork_rng(), without_bars():
        torch.manual_seed(seed)
        lora = LoraConfig(r=8, lora_alpha=32, target_modules="all-linear", init_lora_weights=False)
        get_peft_model(loaded.model, lora).save_pretrained(str(folder))
    loaded.tokenizer.save_pretrained(str(folder))
    return folder


def worst(rows: Sequence[Completion], weights: Path, prompts: Sequence[Sequence[int]], heat: float = 1.0) -> float:
    """Return the largest difference between the server's log-probabilities and transformers' in float32."""
    model = load_model(str(weights), dtype="float32", device="cpu").model
    found = 0.0
    for prompt, row in zip(prompts, rows, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *row.token_ids]])).logits[0, len(prompt) - 1 : -1].float()
        mine = torch.log_softmax(logits / heat, -1).gather(1, torch.tensor([row.token_ids]).T).squeeze(1)
        found = max(found, float((mine - torch.tensor(row.logprobs)).abs().max()))
    return found


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_log_probabilities_are_those_of_transformers(
    sglang_server: SGLangProcess, served_model: Path, temperature: float
) -> None:
    rows = SGLangEngine(sglang_server.url).generate(PROMPTS, Sampling(12, temperature), STOPS, range(6))
    assert worst(rows, served_model, PROMPTS, temperature or 1.0) < 1e-3


def test_a_next_turn_finds_its_dialogue_in_the_cache(sglang_server: SGLangProcess) -> None:
    engine = SGLangEngine(sglang_server.url)
    engine.flush()
    rows = engine.generate(PROMPTS, Sampling(8), STOPS, range(6))
    known = sum(len(p) + len(row.token_ids) for p, row in zip(PROMPTS, rows, strict=True))
    before = engine.stats.cached_tokens
    longer = [[*p, *row.token_ids, 70, 71] for p, row in zip(PROMPTS, rows, strict=True)]
    engine.generate(longer, Sampling(2), STOPS, range(6))
    assert engine.stats.cached_tokens - before >= known - 2 * len(PROMPTS)  # the last token of a row is computed


def test_two_adapters_on_one_server(sglang_server: SGLangProcess, served_model: Path, tmp_path: Path) -> None:
    policy, user = SGLangEngine(sglang_server.url), SGLangEngine(sglang_server.url)
    first, second = (adapter_of(served_model, tmp_path / f"a{seed}", seed) for seed in (1, 2))
    policy.sync_adapter(first, 1)
    user.sync_adapter(second, 7)
    ours, theirs = (engine.generate(PROMPTS, GREEDY, STOPS, range(6)) for engine in (policy, user))
    assert worst(ours, first, PROMPTS) < 1e-3
    assert worst(theirs, second, PROMPTS) < 1e-3
    assert worst(ours, second, PROMPTS) > 0.1  # the test could tell
    assert ({row.version for row in ours}, {row.version for row in theirs}) == ({1}, {7})
    policy.sync_adapter(second, 2)
    assert worst(policy.generate(PROMPTS, GREEDY, STOPS, range(6)), second, PROMPTS) < 1e-3


@pytest.fixture
def user_folder(served_model: Path, tmp_path: Path) -> Path:
    folder = adapter_of(served_model, tmp_path / "user", 3)
    CalibrationNote("MathChat", "want {{ task.instruction }}", 8, "tiny", "0" * 16, {}).write(folder)
    return folder


def test_a_calibrated_user_on_the_server(sglang_server: SGLangProcess, user_folder: Path) -> None:
    """The log-probabilities of what it says are those of the same user in this process."""
    user = CalibratedUser(user_folder, "MathChat", engine=SGLangEngine(sglang_server.url))
    local = CalibratedUser(user_folder, "MathChat", dtype="float32", device="cpu")
    dialogue = Dialogue(Task("t", "say red", reference="red"), 5)
    prompt = local.chat.opening_ids([{"role": "user", "content": "want say red"}])
    assert worst(user.engine.generate([prompt], user.sampling, STOPS, [1]), user_folder, [prompt]) < 1e-3
    assert len(user.respond([dialogue])) == 1
    assert user.signature.startswith(f"calibrated:tiny-llama@{sglang_server.url}|user|")
    with pytest.raises(DuologueError, match=r"on a server\. Make it from its folder alone"):
        _ = user.loaded
    assert make_simulator(f"calibrated:sglang:{sglang_server.url}#{user_folder}", "MathChat-v0")


def test_a_whole_model_must_be_what_the_server_serves(sglang_server: SGLangProcess, user_folder: Path) -> None:
    (user_folder / "adapter_config.json").unlink()
    engine = SGLangEngine(sglang_server.url)
    with pytest.raises(DuologueError, match=r"has weights of its own\. Start a server with --model-path"):
        CalibratedUser(user_folder, "MathChat", engine=engine)


Make = Callable[..., InteractiveTrainer]


@pytest.fixture
def trainer(served_model: Path, tmp_path: Path) -> Make:
    """Makes a trainer of an adapter in a world whose scores differ, so that every step moves the weights."""

    def graded(dialogues: Sequence[Dialogue]) -> list[float | None]:
        return [int(sha256(repr(d.messages).encode()).hexdigest()[:4], 16) / 0xFFFF for d in dialogues]

    def make(simulator: Any, **changes: Any) -> InteractiveTrainer:
        tasks = TaskList([Task(word, f"say {word}", reference=word) for word in ("red", "blue")], "words")
        config: dict[str, Any] = {"model": str(served_model), "output": str(tmp_path / "run"), "dtype": "float32"}
        config |= {"steps": 3, "groups_per_step": 2, "group_size": 4, "micro_batch_size": 8, "learning_rate": 0.02}
        config |= {"max_tokens_per_turn": 6, "max_total_tokens": 300, "lora_rank": 4, **changes}
        return InteractiveTrainer(
            InteractiveConfig(**config), make_env=lambda n: DialogueVectorEnv(n, tasks, simulator, graded, 2)
        )

    return make


def written(tmp_path: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "run" / name).read_text(encoding="utf-8").splitlines()]


def check_run(folder: Path) -> None:
    """Three steps of eight dialogues, each there once and sampled with its own step's weights."""
    rows, metrics = (
        [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
        for name in ("episodes.jsonl", "metrics.jsonl")
    )
    assert [row["step"] for row in rows] == [step for step in range(3) for _ in range(8)]
    assert all(row["reward"] is not None and row["error"] is None for row in rows)
    assert all(span["policy_version"] == row["step"] for row in rows for span in row["spans"])
    assert [row["step"] for row in metrics] == [1, 2, 3]
    assert max(row["sampling/logp_difference"] for row in metrics) < 1e-4


def test_every_step_samples_from_the_weights_just_trained(
    sglang_server: SGLangProcess, user_folder: Path, trainer: Make, tmp_path: Path
) -> None:
    user = CalibratedUser(user_folder, "MathChat", engine=SGLangEngine(sglang_server.url))
    made = trainer(user, engine=f"sglang:{sglang_server.url}")
    moved, recomputed = [], made.trainer._recomputed
    last: list[dict[str, Any]] = []

    def watched(output: dict[str, Any]) -> torch.Tensor:
        if last:  # what the new weights say of the last step's tokens: the test could tell old weights
            mask = (last[0]["completion_mask"] * last[0]["tool_mask"]).bool()
            moved.append(float((recomputed(last[0]) - last[0]["sampling_per_token_logps"])[mask].abs().mean()))
        last[:] = [dict(output)]
        return recomputed(output)

    made.trainer._recomputed = watched  # type: ignore[method-assign]
    made.train()
    rows = written(tmp_path, "episodes.jsonl")
    assert [sum(row["step"] == step for row in rows) for step in range(3)] == [8, 8, 8]
    assert all(span["policy_version"] == row["step"] for row in rows for span in row["spans"])
    differences = [row["sampling/logp_difference"] for row in written(tmp_path, "metrics.jsonl")]
    assert len(differences) == 3
    assert max(differences) < 1e-4
    assert min(moved) > 20 * max(differences)


def test_a_server_of_another_base_is_found_out(
    sglang_server: SGLangProcess, user_folder: Path, trainer: Make, tmp_path: Path
) -> None:
    loaded = load_model(sglang_model(sglang_server), dtype="float32", device="cpu")
    with torch.no_grad():
        for weight in loaded.model.parameters():
            weight.mul_(1.5)
    loaded.model.save_pretrained(tmp_path / "other")
    loaded.tokenizer.save_pretrained(tmp_path / "other")
    local = CalibratedUser(user_folder, "MathChat", dtype="float32", device="cpu")
    made = trainer(local, engine=f"sglang:{sglang_server.url}", model=str(tmp_path / "other"))
    with pytest.raises(DuologueError, match=r"differ by .* Check that engine and trainer share weights"):
        made.train()


def sglang_model(server: SGLangProcess) -> str:
    return SGLangEngine(server.url).model_path


@pytest.mark.usefixtures("short_pauses")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_passing_fault_changes_nothing(sglang_server: SGLangProcess, fault: str) -> None:
    with proxy(sglang_server.url, "/generate") as between:
        engine = SGLangEngine(between.url, timeout=4.0 if fault == "silence" else 60.0)
        undisturbed = engine.generate(PROMPTS, GREEDY, STOPS, range(6))
        between.passed = 0
        between.faults.extend([fault] * 4)
        met = engine.generate(PROMPTS, GREEDY, STOPS, range(6))
    assert [row.token_ids for row in met] == [row.token_ids for row in undisturbed]
    assert engine.stats.completions == 12
    assert engine.retried >= 4
    assert between.passed == 6


@pytest.mark.usefixtures("short_pauses")
def test_a_lasting_fault_costs_its_own_rows_alone(sglang_server: SGLangProcess) -> None:
    with proxy(sglang_server.url, "/generate") as between:
        engine = SGLangEngine(between.url, retries=1, concurrency=1)
        between.faults.extend(["500"] * 2)
        with pytest.raises(RowsError, match=r"^1 of 6 prompts got no completion.*Wait, or lower concurrency\.$") as met:
            engine.generate(PROMPTS, GREEDY, STOPS, range(6))
    assert [isinstance(row, Completion) for row in met.value.rows] == [False, *[True] * 5]


def test_nobody_listens() -> None:
    with pytest.raises(DuologueError, match=r"cannot be reached.*Start the server, or check the URL\.$"):
        SGLangEngine(f"http://127.0.0.1:{free_port()}")


def test_a_silent_server(sglang_server: SGLangProcess) -> None:
    engine = SGLangEngine(sglang_server.url, timeout=2.0, retries=0)
    sglang_server.signal(signal.SIGSTOP)
    try:
        with pytest.raises(RowsError, match=r"did not answer in time.*Raise timeout, or lower concurrency\.$"):
            engine.generate(PROMPTS[:1], GREEDY, STOPS, [0])
    finally:
        sglang_server.signal(signal.SIGCONT)
    sglang_server.wait()
    assert SGLangEngine(sglang_server.url).generate(PROMPTS[:1], GREEDY, STOPS, [0])


def test_training_outlives_a_server_that_is_killed(
    sglang_server: SGLangProcess, user_folder: Path, trainer: Make, tmp_path: Path
) -> None:
    """Killed in the middle of a turn of the second step, and started again: both speakers' adapters come back."""
    user = CalibratedUser(user_folder, "MathChat", engine=SGLangEngine(sglang_server.url))
    made = trainer(user, engine=f"sglang:{sglang_server.url}")
    play = made.play

    def disturbed(rows: Any, step: int, training: bool) -> Any:
        if step == 1:
            made.agent.engine.version = step  # type: ignore[attr-defined]
            threading.Thread(target=kill_and_start, args=[sglang_server]).start()
        return play(rows, step, training)

    made.play = disturbed  # type: ignore[method-assign]
    object.__setattr__(made.trainer.options, "play", disturbed)
    made.train()
    check_run(tmp_path / "run")


def test_a_trainer_that_is_killed_goes_on(sglang_server: SGLangProcess, served_model: Path, tmp_path: Path) -> None:
    """Killed amid the turns of its second step, then in its second update: each goes on from the last whole step."""
    sizes = {"steps": 3, "groups_per_step": 2, "group_size": 4, "micro_batch_size": 4, "save_steps": 1}
    limits = {"max_tokens_per_turn": 8, "max_total_tokens": 400, "lora_rank": 4, "learning_rate": 0.01}
    who = {"model": str(served_model), "engine": f"sglang:{sglang_server.url}", "output": str(tmp_path / "run")}
    places = ["while a server samples", "in the optimiser"]
    done = die_everywhere({**who, **sizes, **limits, "dtype": "float32", "places": places}, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [-signal.SIGKILL] * 2 + [0], done.stderr
    check_run(tmp_path / "run")


def test_a_full_disk_costs_a_step_and_no_adapter_stays(
    sglang_server: SGLangProcess, user_folder: Path, trainer: Make, small_disk: Any
) -> None:
    """At ever later files, the adapters that the server is to read among them; then the same command ends the run."""
    user = CalibratedUser(user_folder, "MathChat", dtype="float32", device="cpu")
    output, before = small_disk.folder / "run", models(sglang_server)

    def make() -> InteractiveTrainer:
        return trainer(user, engine=f"sglang:{sglang_server.url}", output=str(output), save_steps=1)

    said, room = [], 0
    while room < 4_000_000:
        try:
            with small_disk.full(room):
                make().train()
            break
        except DiskFullError as error:
            said.append(str(error))
            room += 30_000 if small_disk.own else 10_000
    assert len(said) > 2
    ends = ("checkpoint yet (save_steps makes some).", *(f"step {n}." for n in range(4)))
    assert all(text.endswith(ends) for text in said)
    assert (output / "final" / "adapter_config.json").is_file()
    check_run(output)
    assert models(sglang_server) == before


def models(server: SGLangProcess) -> list[str]:
    return [row["id"] for row in httpx.get(f"{server.url}/v1/models").json()["data"]]


def kill_and_start(server: SGLangProcess) -> None:
    time.sleep(0.15)
    server.signal(signal.SIGKILL)
    server.start(wait=False)
