import re
from pathlib import Path

from duologue.simulators import MIXES

DOC = Path(__file__).resolve().parents[2] / "docs" / "simulators.md"


def test_the_example_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", DOC.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(code, str(DOC), "exec"), {"__name__": "example"})


def test_mixes_are_documented() -> None:
    assert all(f"`{name}`" in DOC.read_text(encoding="utf-8") for name in MIXES)
