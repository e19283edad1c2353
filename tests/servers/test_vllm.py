"""Real vLLM: training with it in the process, and TRL's client of a server; chats are tested beside other servers'."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from tests.servers.transformers_process import make_model
from tests.servers.vllm_process import MISSING, PYTHON, VLLMProcess, run_beside_vllm
from tests.servers.vllm_worker import PROMPTS, STOPS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PYTHON.is_file(), reason=MISSING)]
WORKER = Path(__file__).with_name("vllm_worker.py")


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_step_samples_from_the_weights_that_were_just_trained(tmp_path: Path) -> None:
    run_beside_vllm(WORKER, "colocated", str(make_model(tmp_path / "model", head_size=32)), str(tmp_path / "run"))
    rows = read(tmp_path / "run" / "episodes.jsonl")
    assert len(rows) == 24
    versions = [{span["policy_version"] for row in rows[i : i + 8] for span in row["spans"]} for i in (0, 8, 16)]  # type: ignore[attr-defined]
    assert versions == [{0}, {1}, {2}]
    assert len({str(row["completion_ids"]) for row in rows}) == 24  # each row has a seed of its own
    differences = [float(str(row["sampling/logp_difference"])) for row in read(tmp_path / "run" / "metrics.jsonl")]
    assert max(differences) < 2 * differences[0]  # bfloat16 against float32, at step 0 and no more after it
    assert max(differences) < 0.05


def test_rows_of_a_server_are_what_was_asked_for(vllm_server: VLLMProcess, vllm_model: Path, tmp_path: Path) -> None:
    run_beside_vllm(WORKER, "served", vllm_server.url, str(tmp_path / "rows.json"))
    found = json.loads((tmp_path / "rows.json").read_text())
    assert found["context"] == 2048
    first, again = found["calls"]
    assert [row[0] for row in first] == [row[0] for row in again]  # a seed is a sample
    assert first[0][0] != first[2][0]  # and another seed another one
    model = AutoModelForCausalLM.from_pretrained(vllm_model, dtype="float32")
    for prompt, (ids, logprobs, finish) in zip(PROMPTS, first, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1]
        expected = torch.log_softmax(logits / 0.7, -1).gather(1, torch.tensor(ids)[:, None]).squeeze(1)
        assert torch.tensor(logprobs) == pytest.approx(expected, abs=1e-3)
        assert (ids[-1] in STOPS) == (finish == "stop")
        assert len(ids) <= 12
        assert not set(ids[:-1]) & set(STOPS)
