"""Many dialogues at a time: nothing may grow."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.sglang_standin import VOCABULARY

ROOT = Path(__file__).resolve().parents[2]
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
