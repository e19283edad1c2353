"""vLLM as TRL starts it: whose rows are whose, with what weights, seeds and stops; vLLM itself is in tests/servers."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from duologue.engines import RowsError, Sampling
from duologue.engines.hf import TransformersEngine
from duologue.engines.models import LoadedModel
from duologue.errors import DuologueError
from duologue.trainers.interactive import InteractiveTrainer
from duologue.trainers.progress import quiet_console
from duologue.trainers.trl_config import grpo_config
from duologue.trainers.trl_vllm import TRLvLLM

PROMPTS = [[2, 10, 11], [2, 7], [2, 9, 8, 7]]
STOPS = [3]


@dataclass
class Parameters:
    """What vLLM's ``SamplingParams`` is given."""

    seed: int
    max_tokens: int
    temperature: float
    stop_token_ids: list[int]
    ignore_eos: bool
    logprobs: int
    top_p: float
    top_k: int
    min_p: float
    repetition_penalty: float
    n: int
    detokenize: bool = True


@dataclass
class InProcess:
    """Has the calls of ``vllm.LLM`` and samples with transformers."""

    engine: TransformersEngine
    calls: list[list[Any]] = field(default_factory=list)
    llm_engine: Any = field(default_factory=lambda: SimpleNamespace(model_config=SimpleNamespace(max_model_len=64)))

    def generate(self, prompts: Sequence[dict[str, Any]], chosen: Sequence[Parameters], use_tqdm: bool) -> list[Any]:
        ids = [prompt["prompt_token_ids"] for prompt in prompts]
        self.calls.append([(row, one.seed) for row, one in zip(ids, chosen, strict=True)])
        sampling = Sampling(chosen[0].max_tokens, chosen[0].temperature)
        done = self.engine.generate(ids, sampling, chosen[0].stop_token_ids, [one.seed for one in chosen])
        return [SimpleNamespace(outputs=[answer(row.token_ids, row.logprobs)]) for row in done]


def answer(ids: Sequence[int], scores: Sequence[float]) -> Any:
    """As vLLM answers with ``logprobs=0``: for each place the sampled token's entry."""
    entries = [{token: SimpleNamespace(logprob=score, rank=1)} for token, score in zip(ids, scores, strict=True)]
    return SimpleNamespace(token_ids=list(ids), logprobs=entries)


@pytest.fixture(autouse=True)
def vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("vllm")
    module.SamplingParams = Parameters  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", module)


@pytest.fixture
def engine(load: Callable[[], LoadedModel]) -> TransformersEngine:
    return TransformersEngine(load().model, 0)


def colocated(engine: TransformersEngine, **more: Any) -> Any:
    """A trainer whose vLLM runs in its process; it counts how often weights are sent."""
    sent: list[int] = []
    vllm = SimpleNamespace(mode="colocate", tensor_parallel_size=1, llm=InProcess(engine), **more)
    vllm.sync_weights = lambda: sent.append(len(vllm.llm.calls))
    return SimpleNamespace(vllm_generation=vllm, sent=sent)


def test_rows_are_those_of_the_engine_in_process(engine: TransformersEngine) -> None:
    made = TRLvLLM(colocated(engine))
    seeds = [11, 2**40 + 12, 13]
    rows = made.generate(PROMPTS, Sampling(8, 0.7), STOPS, seeds)
    assert rows == engine.generate(PROMPTS, Sampling(8, 0.7), STOPS, [seed % 2**31 for seed in seeds])
    assert {row.finish for row in rows} <= {"stop", "length"}
    assert all((row.token_ids[-1] in STOPS) == (row.finish == "stop") for row in rows)
    assert made.context_length == 64


def test_weights_are_sent_once_a_version_and_rows_say_theirs(engine: TransformersEngine) -> None:
    trainer = colocated(engine)
    made = TRLvLLM(trainer)
    for version in (0, 0, 1, 1, 2):
        made.version = version
        assert {row.version for row in made.generate(PROMPTS, Sampling(2), STOPS, [1, 2, 3])} == {version}
    assert trainer.sent == [0, 2, 4]  # before the first row of each version, and then no more


def test_what_it_is_asked_for_is_said_outright(engine: TransformersEngine) -> None:
    trainer = colocated(engine)
    seen: list[Parameters] = []
    generate = trainer.vllm_generation.llm.generate

    def watched(prompts: Any, chosen: Any, use_tqdm: bool) -> Any:
        seen.extend(chosen)
        return generate(prompts, chosen, use_tqdm)

    trainer.vllm_generation.llm.generate = watched
    TRLvLLM(trainer).generate(PROMPTS[:1], Sampling(5, 0.7), STOPS, [9])
    assert seen == [Parameters(9, 5, 0.7, STOPS, True, 0, 1.0, 0, 0.0, 1.0, 1, detokenize=False)]


def test_what_cannot_be_sampled_is_refused(engine: TransformersEngine) -> None:
    made = TRLvLLM(colocated(engine))
    with pytest.raises(DuologueError, match="leaves no room for 63 more in a context of 64"):
        made.generate(PROMPTS, Sampling(63), STOPS, [1, 2, 3])


def test_one_that_has_failed_is_not_asked_again(engine: TransformersEngine) -> None:
    trainer = colocated(engine)
    made = TRLvLLM(trainer)
    llm = trainer.vllm_generation.llm
    llm.engine = None
    with pytest.raises(AttributeError):
        made.generate(PROMPTS, Sampling(4), STOPS, [1, 2, 3])
    llm.engine = engine
    with pytest.raises(DuologueError, match=r"^vLLM has failed in this run: AttributeError.* and run again\.$"):
        made.generate(PROMPTS, Sampling(4), STOPS, [1, 2, 3])


@dataclass
class Client:
    """Has the calls of TRL's ``VLLMClient``; one prompt is more than it can take."""

    engine: TransformersEngine
    kind: str = "processed_logprobs"
    one_at_a_time: Any = field(default_factory=threading.Lock)

    def get_server_info(self) -> Any:
        return {"model_config": {"logprobs_mode": self.kind, "max_model_len": 64}}

    def generate(self, prompts: list[list[int]], generation_kwargs: dict[str, Any]) -> Any:
        if prompts == [PROMPTS[1]]:
            raise Exception("Request failed: 500, out of memory")
        seed, most = generation_kwargs["seed"], generation_kwargs["max_tokens"]
        with self.one_at_a_time:
            [row] = self.engine.generate(prompts, Sampling(most), generation_kwargs["stop_token_ids"], [seed])
        return {"completion_ids": [list(row.token_ids)], "logprobs": [[[score] for score in row.logprobs]]}


def served(client: Client) -> Any:
    vllm = SimpleNamespace(mode="server", server_base_url="http://127.0.0.1:8000", vllm_client=client)
    return SimpleNamespace(vllm_generation=vllm)


def test_a_row_that_a_server_fails_costs_no_other(engine: TransformersEngine) -> None:
    with pytest.raises(RowsError, match=r"1 of 3 .* 500, out of memory\. Look into its log\.") as caught:
        TRLvLLM(served(Client(engine))).generate(PROMPTS, Sampling(4), STOPS, [1, 2, 3])
    expected = engine.generate(PROMPTS, Sampling(4), STOPS, [1, 2, 3])
    first, failed, last = caught.value.rows
    for row, same in ((first, expected[0]), (last, expected[2])):
        assert not isinstance(row, DuologueError)
        assert row.token_ids == same.token_ids
        assert row.logprobs == pytest.approx(same.logprobs, abs=1e-5)  # batches differ in how they round
    assert isinstance(failed, DuologueError)


@pytest.mark.parametrize(
    "broken",
    [
        {"completion_ids": [[]], "logprobs": [[]]},
        {"completion_ids": [[7, 8]], "logprobs": None},
        {"completion_ids": [[7, 8]], "logprobs": [[[-1.0]]]},
        {"completion_ids": [[7, 8]], "logprobs": [[[-1.0], [None]]]},  # TRL's word for a NaN
    ],
)
def test_an_answer_without_tokens_or_numbers_costs_no_other(engine: TransformersEngine, broken: dict[str, Any]) -> None:
    client, whole = Client(engine), Client.generate
    client.generate = lambda prompts, **more: (  # type: ignore[method-assign]
        broken if prompts == [PROMPTS[1]] else whole(client, prompts, **more)
    )
    with pytest.raises(RowsError, match=r"^1 of 3 .* Look into its log\.$") as caught:
        TRLvLLM(served(client)).generate(PROMPTS, Sampling(4), STOPS, [1, 2, 3])
    assert [isinstance(row, DuologueError) for row in caught.value.rows] == [False, True, False]


def test_a_server_whose_probabilities_know_no_temperature_is_refused(engine: TransformersEngine) -> None:
    with pytest.raises(DuologueError, match=r"\(raw_logprobs\)\. Start it with --logprobs-mode processed_logprobs\.$"):
        TRLvLLM(served(Client(engine, "raw_logprobs")))


def test_a_run_samples_with_it_and_compares(trainer: Callable[..., InteractiveTrainer], world: Any) -> None:
    made = trainer({"reward": world.graded})
    made.trainer.vllm_generation = colocated(TransformersEngine(made.trainer.model, 0)).vllm_generation
    made.trainer.use_vllm = True
    made.agent.engine = made._engine()
    assert isinstance(made.agent.engine, TRLvLLM)
    made.train()
    rows = made.episodes.read()
    assert [{span.policy_version for row in rows[i : i + 8] for span in row.spans} for i in (0, 8)] == [{0}, {1}]
    first, _ = made.metrics
    assert first["sampling/logp_difference"] < 1e-4


def test_trl_is_told_to_leave_sampling_to_us(settings: Callable[..., Any]) -> None:
    trl = {"use_vllm": True, "vllm_mode": "colocate", "vllm_gpu_memory_utilization": 0.3}
    with quiet_console():
        made = grpo_config(settings(trl=trl))
    assert made.use_vllm
    assert not made.vllm_importance_sampling_correction
    assert made.vllm_max_model_length == 100


TOGETHER = """
import json, sys
from types import SimpleNamespace
from torch import distributed
from tests.trainers.test_trl_vllm import Parameters, answer
from duologue.engines import Sampling
from duologue.trainers.trl_vllm import TRLvLLM

sys.modules["vllm"] = SimpleNamespace(SamplingParams=Parameters)
distributed.init_process_group("gloo")
rank = distributed.get_rank()
calls = []

class Echo:
    llm_engine = SimpleNamespace(model_config=SimpleNamespace(max_model_len=64))
    def generate(self, prompts, chosen, use_tqdm):
        rows = [(p["prompt_token_ids"], c.seed) for p, c in zip(prompts, chosen)]
        calls.append(rows)
        return [SimpleNamespace(outputs=[answer([*ids, seed], [-1.0] * (len(ids) + 1))]) for ids, seed in rows]

vllm = SimpleNamespace(mode="colocate", tensor_parallel_size=2, llm=Echo(), tp_group=distributed.group.WORLD)
made = TRLvLLM(SimpleNamespace(vllm_generation=vllm))
found = []
for step in range(2):
    for turn in range([1, 4][rank] + step):
        prompts = [[rank, step, turn, i] for i in range(1 + rank + turn)]
        rows = made.generate(prompts, Sampling(8), [3], [100 * rank + i for i in range(len(prompts))])
        found.append([list(row.token_ids) for row in rows] == [[*p, 100 * rank + i] for i, p in enumerate(prompts)])
    made.leave()
json.dump({"calls": calls, "found": found}, open(f"{sys.argv[1]}/{rank}.json", "w"))
"""


@pytest.mark.slow
def test_processes_that_share_one_ask_it_for_the_same_and_none_waits_for_ever(tmp_path: Path) -> None:
    script = tmp_path / "together.py"
    script.write_text(TOGETHER)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(script), str(tmp_path)]
    root = Path(__file__).parents[2]
    calm = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(root)}
    done = subprocess.run(command, env=calm, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert first["found"] == [True] * 3
    assert second["found"] == [True] * 9
    assert first["calls"] == second["calls"]
    assert len(first["calls"]) == 9  # as many rounds as the longer dialogues have turns, and no empty one
