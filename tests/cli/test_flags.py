"""Flags and YAML files from dataclasses."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest
from typer import Typer
from typer.testing import CliRunner

from duologue.analysis import EvaluateConfig, RolloutConfig
from duologue.cli.flags import configured, load_config
from duologue.cli.play import PlayConfig
from duologue.errors import DuologueError
from duologue.trainers import InteractiveConfig


@dataclass(frozen=True)
class Config:
    env: str = field(default="E-v0", metadata={"help": "The env."})
    n_steps: int = field(default=3, metadata={"help": "Steps."})
    rate: float = field(default=0.5, metadata={"help": "Rate."})
    name: str | None = field(default=None, metadata={"help": "Name."})
    fast: bool = field(default=False, metadata={"help": "Fast."})
    safe: bool = field(default=True, metadata={"help": "Safe."})
    extra: dict[str, Any] = field(default_factory=dict, metadata={"help": "Extra."})

    def __post_init__(self) -> None:
        if self.n_steps < 1:
            raise DuologueError("n_steps is too small.\n  Set it to 1 or more.")


def run(*arguments: str) -> tuple[Config | None, str, int]:
    """Return the configuration that a command gets, what it printed on stderr, and its exit code."""
    got: list[Config] = []
    app = Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(configured(Config)(got.append))
    result = CliRunner().invoke(app, list(arguments))
    return (got[0] if got else None), result.output, result.exit_code


@pytest.fixture
def yaml_file(tmp_path: Path) -> Path:
    path = tmp_path / "c.yaml"
    path.write_text("env: F-v0\nn_steps: 7\nrate: 1e-5\nfast: true\nname: null\nextra: {a: 1}\n")
    return path


def test_defaults() -> None:
    assert run()[0] == Config()


def test_every_flag() -> None:
    given = ["G-v0", "--n-steps", "4", "--rate", "1e-5", "--name", "x", "--fast", "--no-safe", "--extra", "k=2"]
    assert run(*given)[0] == Config("G-v0", 4, 1e-5, "x", True, False, {"k": 2})


def test_yaml_and_flags_over_yaml(yaml_file: Path) -> None:
    filed = Config("F-v0", 7, 1e-5, None, True, True, {"a": 1})
    assert run("--config", str(yaml_file))[0] == filed
    got = run("H-v0", "--config", str(yaml_file), "--n-steps", "3", "--no-fast", "--extra", "b=x")[0]
    assert got == Config("H-v0", 3, 1e-5, None, False, True, {"b": "x"})  # 3 is also the default, and was asked for


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            ["a=1", "b=1e-5", "c=true", "d=text", "e=x=y", "f="],
            {"a": 1, "b": 1e-5, "c": True, "d": "text", "e": "x=y", "f": ""},
        ),
        (['{"a": {"b": [1]}}'], {"a": {"b": [1]}}),
    ],
)
def test_dict_flags(given: list[str], expected: dict[str, Any]) -> None:
    got = run(*[part for item in given for part in ("--extra", item)])[0]
    assert got is not None
    assert got.extra == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n_step: 1", "There is no field 'n_step'. Did you mean 'n_steps'?"),
        ("n_steps: many", "n_steps is 'many'. Give a value of type int."),
        ("n_steps: 1.5", "n_steps is 1.5. Give a value of type int."),
        ("n_steps: true", "n_steps is True. Give a value of type int."),
        ("n_steps: null", "n_steps is None. Give a value of type int."),
        ("rate: fast", "rate is 'fast'. Give a value of type float."),
        ("rate: true", "rate is True. Give a value of type float."),
        ("fast: 1", "fast is 1. Give a value of type bool."),
        ("name: 3", "name is 3. Give a value of type str or null."),
        ("extra: [1]", "extra is [1]. Give a value of type dict."),
        ("- 1", "holds no fields. Write lines like 'episodes: 100'."),
        ("a: [", "is no YAML:"),
        ("1: 2", "There is no field 1."),
        ("n_steps: 0", "n_steps is too small. Set it to 1 or more."),
    ],
)
def test_bad_files_are_one_clean_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    config, output, code = run("--config", str(tmp_path / "bad.yaml"))
    assert (config, code) == (None, 2)
    assert output.startswith("error: ")
    assert message in output
    assert output.count("\n") == 1


def test_empty_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    assert run("--config", str(tmp_path / "empty.yaml"))[0] == Config()
    assert "Cannot read the file" in run("--config", str(tmp_path / "none.yaml"))[1]


@pytest.mark.parametrize(
    ("item", "message"), [("oops", "has no value"), ("=1", "has no value"), ("{oops", "is no JSON object")]
)
def test_bad_dict_flags(item: str, message: str) -> None:
    config, output, code = run("--extra", item)
    assert (config, code) == (None, 2)
    assert message in output


def test_a_fault_of_ours_is_not_hidden() -> None:
    def broken(config: Config) -> None:
        raise ValueError("a bug")

    app = Typer(pretty_exceptions_enable=False)
    app.command()(configured(Config)(broken))
    assert isinstance(CliRunner().invoke(app, []).exception, ValueError)


def test_help_shows_help_and_defaults() -> None:
    text = " ".join(run("--help")[1].split())
    for part in (
        "The env. [default: E-v0]",
        "Rate. [default: 0.5]",
        "[default: --no-fast]",
        "[default: --safe]",
        "--no-safe",
    ):
        assert part in text


@pytest.mark.parametrize("make", [EvaluateConfig, RolloutConfig, InteractiveConfig, PlayConfig])
def test_every_field_of_every_configuration_has_help_and_loads(make: Any) -> None:
    assert all(f.metadata["help"].endswith((".", "…")) for f in fields(make))
    assert load_config(make, None, {f.name: None for f in fields(make)}) == make()
