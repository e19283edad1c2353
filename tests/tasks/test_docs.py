"""The page about tasks must name what exists."""

import re
from pathlib import Path

from duologue.envs import tasks
from duologue.envs.tasks.hub import HUB_SETS
from duologue.envs.tasks.spec import KINDS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")


def test_every_kind_and_known_set_is_on_the_page() -> None:
    assert all(f"`{name}:" in PAGE for name in KINDS)
    assert all(f"`{name}`" in PAGE for name in HUB_SETS if not name.endswith("-large"))


def test_the_public_names_on_the_page_exist() -> None:
    listed = PAGE.partition("In Python:")[2].partition("all in")[0]
    assert set(re.findall(r"`(\w+)`", listed)) <= set(tasks.__all__)
