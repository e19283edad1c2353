"""Many dialogues at a time: nothing may grow. And the same engine against a real server, where one is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from duologue.engines import Sampling, SGLangEngine, load_model
from tests.engines.sglang_standin import VOCABULARY

ROOT = Path(__file__).resolve().parents[2]
REAL = os.environ.get("DUOLOGUE_SGLANG_URL", "")
needs_server = pytest.mark.skipif(not REAL, reason="DUOLOGUE_SGLANG_URL names no running SGLang server")
SERVE = """
from tests.engines.sglang_standin import VOCABULARY, StandIn
server = StandIn(lambda tokens, weights, adapter: [0.0] * VOCABULARY)  # quick, to load the client and not the server
print(server.url, flush=True)
input()
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_256_dialogues_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.server_load import run_load

    with subprocess.Popen(
        [sys.executable, "-c", SERVE], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout
        report = run_load(server.stdout.readline().strip(), 256, 15.0, VOCABULARY)
        server.communicate("\n")
    _, warm, end = report["state"]
    assert report["failed"] == 0
    assert report["completions"] >= 256
    assert end["open_files"] <= warm["open_files"] + 8
    assert end["memory_kib"] < warm["memory_kib"] + 50_000


@pytest.mark.slow
@needs_server
@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_a_real_server_agrees_with_transformers(temperature: float) -> None:
    """The server's model must be on this machine too; bfloat16 servers differ in the second digit."""
    engine = SGLangEngine(REAL)
    loaded = load_model(engine.model_path, dtype="float32", device="cpu")
    prompts = [loaded.tokenizer(text)["input_ids"] for text in ("The capital of France is", "1 2 3 4")]
    rows = engine.generate(prompts, Sampling(12, temperature), [loaded.tokenizer.eos_token_id], [1, 2])
    import torch

    for prompt, row in zip(prompts, rows, strict=True):
        ids = torch.tensor([[*prompt, *row.token_ids]])
        with torch.no_grad():
            logits = loaded.model(ids).logits[0, len(prompt) - 1 : -1].float()
        logp = torch.log_softmax(logits / (temperature or 1.0), -1)
        mine = logp.gather(1, torch.tensor(row.token_ids).unsqueeze(1)).squeeze(1)
        assert float((mine - torch.tensor(row.logprobs)).abs().mean()) < 0.1


@pytest.mark.slow
@needs_server
def test_a_real_server_caches_turns_and_knows_versions(tmp_path: Path) -> None:
    engine = SGLangEngine(REAL)
    loaded = load_model(engine.model_path, dtype="float32", device="cpu")
    prompt = loaded.tokenizer("Once upon a time there was a small house at the edge of a wood, and")["input_ids"]
    (row,) = engine.generate([prompt], Sampling(8), [], [1])
    engine.generate([[*prompt, *row.token_ids, *prompt]], Sampling(8), [], [2])
    assert engine.stats.cached_tokens > 0
    loaded.model.save_pretrained(tmp_path)
    engine.sync_weights(tmp_path, 5)
    assert engine.generate([prompt], Sampling(8), [], [1])[0].version == 5
    assert engine.stats.stale == 0
    if os.environ.get("DUOLOGUE_SGLANG_LORA"):  # a server that was started with --enable-lora
        from duologue.engines.models import without_bars

        with without_bars():
            from peft import LoraConfig, get_peft_model

            get_peft_model(loaded.model, LoraConfig(r=8, target_modules=["q_proj", "v_proj"])).save_pretrained(
                str(tmp_path / "adapter")
            )
        engine.sync_adapter(tmp_path / "adapter", 6)
        assert engine.generate([prompt], Sampling(8), [], [1])[0].version == 6
