"""docs/training.md says what the code does."""

import re
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import pytest

from duologue.engines.models import LoadedModel
from duologue.trainers.cloning import CloningConfig
from duologue.trainers.config import InteractiveConfig
from duologue.trainers.interactive import InteractiveTrainer
from duologue.trainers.run_folder import _FREE
from duologue.types import StopReason

DOC = Path(__file__).resolve().parents[2] / "docs" / "training.md"
TEXT = DOC.read_text(encoding="utf-8")


def table(config: Any) -> str:
    """The configuration's fields as the page lists them; paste it there when this test fails."""
    rows = [f"| `{f.name}` | {default(f)} | {f.metadata['help']} |" for f in fields(config)]
    return "\n".join(["| field | default | what |", "|---|---|---|", *rows]) + "\n"


def default(field: Field[Any]) -> str:
    value = field.default if field.default_factory is MISSING else field.default_factory()
    return f"`{value}`" if value is not None else "none"


@pytest.mark.parametrize("config", [InteractiveConfig, CloningConfig])
def test_tables_are_the_dataclasses(config: Any) -> None:
    assert table(config) in TEXT, f"docs/training.md needs this table:\n{table(config)}"


def test_examples_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, load: Callable[[], LoadedModel]) -> None:
    for module in ("interactive", "cloning"):
        monkeypatch.setattr(f"duologue.trainers.{module}.load_model", lambda name, dtype, device=None: load())
    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
    exec(compile(code, str(DOC), "exec"), {"__name__": "example"})
    for folder in ("maths/final", "greet/final", "warm"):
        assert (tmp_path / "runs" / folder / "adapter_config.json").is_file()


def test_files_are_those_that_a_run_writes(trainer: Callable[..., InteractiveTrainer]) -> None:
    made = trainer(steps=1, save_steps=1)
    made.train()
    section = TEXT.partition("## Files")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `([\w.*-]+?)/?` \|", section, re.MULTILINE)
    written = {re.sub(r"checkpoint-\d+", "checkpoint-*", path.name) for path in made.output.iterdir()}
    assert set(listed) == written


def test_stop_reasons_and_free_fields_are_named() -> None:
    assert all(f"`{name}`" in TEXT.partition("## Stop")[2] for name in _FREE)
    named = set(re.findall(r"`(\w+_(?:limit|error|overflow))`", TEXT))
    assert named <= {reason.value for reason in StopReason}
    assert {"token_limit", "context_overflow", "policy_error", "simulator_error"} <= named
