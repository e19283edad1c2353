"""The documentation names what exists."""

import re
from dataclasses import fields
from pathlib import Path

import yaml

import duologue.analysis as analysis
from duologue.analysis import EvaluateConfig

DOCS = Path(__file__).parents[2] / "docs"


def test_the_yaml_example_loads() -> None:
    [block] = re.findall(r"```yaml\n(.*?)```", (DOCS / "cli.md").read_text(), re.DOTALL)
    assert set(yaml.safe_load(block)) <= {f.name for f in fields(EvaluateConfig)}


def test_every_public_name_loads() -> None:
    assert sorted(analysis._HOMES) == sorted(analysis.__all__)
    assert all(hasattr(analysis, name) for name in analysis.__all__)
