"""results.json from episodes made by hand, and the files made from it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from duologue.analysis.compare.cells import Cell, Plan
from duologue.analysis.compare.config import CompareConfig
from duologue.analysis.compare.run import planned, report
from duologue.analysis.compare.stages import Done
from duologue.analysis.compare.transcripts import transcripts
from duologue.analysis.play import starts_of
from duologue.analysis.store import EpisodeFile
from duologue.envs.tasks.spec import make_tasks
from duologue.types import Episode, Message, StopReason

PRESET = str(Path(__file__).with_name("tiny.yaml"))
SCORES: Mapping[tuple[str, str], tuple[tuple[float | None, ...], ...]] = {
    ("base", "held_out"): ((0, 0, 0, 1, 0, 0), (0, 1, 0, 0, 0, 0)),
    ("naive", "held_out"): ((1, 0, 0, 1, 0, None), (0, 1, 0, 1, 0, 0)),
    ("naive", "naive"): ((1, 1, 1), (1, 1, 0)),
}
"""By policy and user: of two seeds. The others are all 0."""


def episode(seed: int, reward: float | None, turns: int = 1, leaks: bool = False) -> Episode:
    task = make_tasks("math:level=1,split=test", "MathChat").find(f"math-l1-test-{seed % 1000:07d}")
    said: list[Message] = [{"role": "user", "content": task.instruction}]
    for _ in range(turns):
        said.append({"role": "assistant", "content": "What do you know?"})
        said.append({"role": "user", "content": f"The answer is {task.reference}." if leaks else "Nothing."})
    stop = StopReason.USER_SATISFIED if reward is not None else StopReason.SIMULATOR_ERROR
    tokens: dict[str, Any] = {"completion_ids": (1,) * 5, "completion_mask": (1, 1, 0, 1, 1), "logprobs": (0.0,) * 5}
    return Episode("MathChat-v0", task.task_id, seed, tuple(said), stop, reward, **tokens)


def write_cell(plan: Plan, cell: Cell, reverse: bool) -> None:
    config = next(stage.config for stage in plan.stages if stage.name == cell.name)
    known = None if cell.step else SCORES.get((cell.policy, cell.user))
    scores = (known or ((0,) * config.episodes,) * 2)[cell.seed]
    turns = 2 if cell.policy == "base" else 1
    played = [
        episode(start.seed, score, turns, leaks=cell.policy == "naive")
        for start, score in zip(starts_of(config.seed, config.episodes), scores, strict=True)
    ]
    folder = plan.root / cell.name
    folder.mkdir(parents=True)
    for one in reversed(played) if reverse else played:
        EpisodeFile(folder / "episodes.jsonl").append(one)


def make(root: Path, reverse: bool = False) -> dict[str, Any]:
    """Return the results of two seeds of two arms."""
    plan = planned(CompareConfig(preset=PRESET, output=str(root), arms="base,naive", seeds=2))
    done = {stage.name: Done(2.0, 1, {"unscored": 0}) for stage in plan.stages}
    for cell in (*plan.cells, *plan.checkpoints):
        write_cell(plan, cell, reverse)
    one = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 6}
    human = {"replayed": one, "free": one, "differs": []}
    done |= {stage.name: Done(1.0, 1, human) for stage in plan.stages if stage.kind == "fidelity"}
    done |= {stage.name: Done(1.0, 1, stage.run()) for stage in plan.stages if "/shift/" in stage.name}
    for seed in (0, 1):
        done[f"seed-{seed}/naive"] = Done(5.0, 2, {"steps": 2, "sampled_tokens": 100 + 50 * seed})
        rows = [{"step": step, "reward": 0.25 * step + seed} for step in (1, 2)]
        (root / f"seed-{seed}" / "naive").mkdir()
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (root / f"seed-{seed}" / "naive" / "metrics.jsonl").write_text(lines)
    done["seed-0/evaluate/naive--held_out"] = Done(2.0, 1, {"unscored": 1})
    return report(plan, done)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def found(root: Path) -> dict[str, Any]:
    return make(root)


def test_scores_are_means_over_seeds_of_scored_dialogues(found: dict[str, Any]) -> None:
    arms = found["arms"]
    assert arms["base"]["score"]["value"] == pytest.approx(1 / 6)
    assert arms["naive"]["score"]["value"] == pytest.approx((2 / 5 + 2 / 6) / 2)
    assert (arms["naive"]["score"]["n"], arms["naive"]["unscored"]) == (11, 1)
    assert arms["naive"]["apparent"]["value"] == pytest.approx((1 + 2 / 3) / 2)


def test_gaps_and_differences_pair_the_same_starts(found: dict[str, Any]) -> None:
    """The gap pairs the first three dialogues of each seed; the difference the five and six that both scored."""
    gap = found["arms"]["naive"]["gap"]
    assert (gap["value"], gap["n"]) == (pytest.approx((2 / 3 + 1 / 3) / 2), 6)
    assert found["arms"]["base"]["gap"] is None
    assert found["differences"].keys() == {"naive - base"}
    difference = found["differences"]["naive - base"]
    assert (difference["score"]["value"], difference["score"]["n"]) == (pytest.approx((1 / 5 + 1 / 6) / 2), 11)
    assert difference["turns"]["value"] == -1.0


def test_turns_tokens_leaks_and_cost(found: dict[str, Any]) -> None:
    arms = found["arms"]
    assert (arms["base"]["turns"]["value"], arms["naive"]["turns"]["value"]) == (2.0, 1.0)
    assert arms["base"]["tokens"]["value"] == 4.0
    assert arms["base"]["leaks"]["value"] == 0.0
    assert arms["naive"]["leaks"]["value"] == 0.5  # openings are user turns too
    assert arms["naive"]["cost"] == {"steps": 2.0, "sampled_tokens": 125.0}
    assert arms["base"]["cost"] is None


def test_curves_and_scores_by_turn(found: dict[str, Any]) -> None:
    curve = [(row["step"], row["reward"], row["seeds"]) for row in found["curves"]["naive"]]
    assert curve == [(1, 0.75, 2), (2, 1.0, 2)]
    assert found["score_by_turn"]["base"] == [0.0, pytest.approx(2 / 12), pytest.approx(2 / 12)]
    assert found["score_by_turn"]["naive"][0] == pytest.approx(4 / 11)


def test_what_went_wrong_is_told(found: dict[str, Any]) -> None:
    assert found["unscored"] == {"seed-0/evaluate/naive--held_out": 1}
    assert found["timing"]["interrupted"] == ["seed-0/naive", "seed-1/naive"]
    assert found["machine"]["cores"] >= 1


def test_the_order_in_which_dialogues_ended_does_not_matter(found: dict[str, Any], tmp_path: Path) -> None:
    assert make(tmp_path, reverse=True) == found


def test_files(found: dict[str, Any], root: Path) -> None:
    assert json.loads((root / "results.json").read_text()) == found
    assert "| naive | 0.367 [" in (root / "table.md").read_text()
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (root / "figures").iterdir())
    assert len(list((root / "figures").iterdir())) == 7


def test_the_transcript_is_where_policies_differ() -> None:
    played = {"a": [episode(0, 0.0), episode(1, 0.0)], "b": [episode(0, 0.0), episode(1, 1.0), episode(2, 1.0)]}
    text = transcripts(played)
    assert text.startswith("# Dialogue 1 with a held-out user")
    assert text.count("\n## ") == 2
    assert "    assistant: What do you know?" in text
