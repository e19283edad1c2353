"""Agents by name, and the baseline of good advice."""

import re

import pytest

from duologue.envs import ENV_IDS
from duologue.errors import DuologueError
from duologue.trainers.named_agents import parse_named_agents
from duologue.trainers.proactive import PROACTIVE_PROMPTS


def test_names_and_specs_in_order() -> None:
    given = [
        "sft=runs/sft",
        "ppo=mod:fn",
        "gpt=http://localhost:8000/v1#a=b",
        " hasty = scripted:hasty-math,haste=0.5 ",
    ]
    assert parse_named_agents(given, reserved=("base",)) == {
        "sft": "runs/sft",
        "ppo": "mod:fn",
        "gpt": "http://localhost:8000/v1#a=b",
        "hasty": "scripted:hasty-math,haste=0.5",
    }
    assert list(parse_named_agents(given)) == ["sft", "ppo", "gpt", "hasty"]
    assert parse_named_agents([]) == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["runs/sft"], r"'runs/sft' lacks its name\. Write NAME=SPEC\."),
        (["sft="], r"'sft=' lacks its spec\. Write NAME=SPEC\."),
        (["=runs/sft"], r"'=runs/sft' has no usable name before '='"),
        (["http://localhost/v1?a=b"], r"has no usable name before '='"),
        (["../up=runs/sft"], r"has no usable name before '='"),
        (["a b=runs/sft"], r"letters, digits, '_', '\.' or '-' in NAME\."),
        (["a=x", "A=y"], r"Two agents are named 'A'\. Give each a name of its own\."),
        (["Base=x"], r"'Base' is taken by an arm of the comparison\. Choose another for 'x'\."),
    ],
)
def test_what_is_refused(given: list[str], message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        parse_named_agents(given, reserved=("base",))


def test_every_environment_has_its_advice() -> None:
    assert set(PROACTIVE_PROMPTS) == set(ENV_IDS)
    math, document = PROACTIVE_PROMPTS["MathChat-v0"], PROACTIVE_PROMPTS["MediumDocEditChat-v0"]
    assert re.search(r"ask for it", math)
    assert "'Answer: X'" in math
    assert "<document>" in document
    assert all("  " not in text and text.endswith(".") for text in (math, document))
