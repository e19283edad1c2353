"""Evaluations from configuration to report, on the real environments with scripted users."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from duologue.analysis import EvaluateConfig, EvaluationReport, RolloutConfig, difference, evaluate, rollout
from duologue.analysis.evaluation import TEST_TASKS
from duologue.analysis.play import starts_of
from duologue.errors import DuologueError
from duologue.simulators import make_simulator
from duologue.trainers import FunctionAgent, Reply
from duologue.types import Dialogue, Episode, StopReason, Task

pytestmark = pytest.mark.usefixtures("agents")
BASE = EvaluateConfig(agent="eval_agents:adder", episodes=40, num_envs=8, output="out")


class Interrupted(FunctionAgent):
    """Stops the run in the middle of a turn, as Ctrl-C would."""

    def __init__(self, turns: int) -> None:
        super().__init__(lambda messages: "The answer is -7.", "constant")
        self.turns = turns

    def act(self, conversations: Any) -> list[Reply]:
        self.turns -= 1
        if self.turns < 0:
            raise KeyboardInterrupt
        return super().act(conversations)


def lines(folder: str) -> list[str]:
    return Path(folder, "episodes.jsonl").read_text().splitlines()


def numbers(report: EvaluationReport) -> dict[str, Any]:
    return report.to_json()


def test_an_agent_that_asks_and_adds_beats_one_that_does_not() -> None:
    asks = evaluate(replace(BASE, episodes=100, output="asks"))
    constant = evaluate(replace(BASE, episodes=100, agent="eval_agents:constant", output="constant"))
    assert asks.score.low > 0.8
    assert constant.score.high < 0.05
    gain = difference(asks.scores, constant.scores)
    assert gain.n == 100  # the same tasks and users: paired
    assert gain.low > 0.8
    assert asks.turns.low > 2
    assert asks.user_leaks is not None
    assert asks.user_leaks.value == 0


def test_what_is_written(tmp_path: Path) -> None:
    seen: list[tuple[int, int, float | None]] = []
    report = evaluate(BASE, on_progress=lambda *row: seen.append(row))
    episodes = [Episode.from_json(json.loads(line)) for line in lines("out")]
    assert [n for n, _, _ in seen] == list(range(1, 41))
    assert seen[-1][1:] == (40, report.score.value)
    assert {e.seed for e in episodes} == {s.seed for s in starts_of(0, 40)}
    written = json.loads(Path("out/report.json").read_text())
    config = written.pop("config")
    assert written == json.loads(json.dumps(report.to_json()))
    assert (config["agent"], config["tasks"]) == ("eval_agents:adder", "math:level=1,split=test")
    assert str(report.score) in Path("out/report.md").read_text()
    assert not list(Path("out").glob("*.partial"))


def test_the_signature_says_how() -> None:
    signature = evaluate(replace(BASE, episodes=2, max_turns=3, seed=5)).signature
    for part in (
        "env:MathChat-v0",
        "split=test",
        "held-out",
        "max_turns:3",
        "agent:eval_agents:adder@",
        "seed:5",
        "|n:2",
    ):
        assert part in signature


@pytest.mark.parametrize("env", ["MathChat-v0", "duologue.envs:MathChat-v0"])
def test_every_spelling_of_an_environment_means_its_test_tasks(env: str) -> None:
    assert "split=test" in evaluate(replace(BASE, env=env, episodes=1)).signature
    assert set(TEST_TASKS) == {"MathChat", "MediumDocEditChat"}


def test_documents_are_measured_in_bleu() -> None:
    report = evaluate(replace(BASE, env="MediumDocEditChat-v0", agent="eval_agents:constant", episodes=3, max_turns=2))
    assert report.metric == "BLEU"
    assert report.scored == 3


def test_same_seed_same_report_whatever_the_slots() -> None:
    one = evaluate(replace(BASE, num_envs=40, output="a"))
    other = evaluate(replace(BASE, num_envs=3, output="b"))
    assert numbers(one) == numbers(other)
    third = evaluate(replace(BASE, seed=1, output="c"))
    assert set(third.scores).isdisjoint(one.scores)


def test_failing_episodes_are_unscored_and_the_rest_goes_on() -> None:
    report = evaluate(replace(BASE, agent="eval_agents:fails_on_books"))
    assert report.unscored > 0
    assert report.scored > 0
    assert report.scored + report.unscored == 40
    assert report.score.n == report.scored
    assert report.score.value > 0.7
    [(error, count)] = report.errors.items()
    assert "no counting today" in error
    assert count == report.unscored


def test_a_user_that_breaks_is_not_the_agents_fault() -> None:
    rollout(RolloutConfig(agent="eval_agents:adder", episodes=1, output="log.jsonl"))  # of another task
    report = evaluate(replace(BASE, episodes=3, simulator="replay:log.jsonl"))
    assert (report.scored, report.unscored) == (0, 3)
    assert set(report.stop_reasons) == {StopReason.SIMULATOR_ERROR.value}
    assert "was logged" in next(iter(report.errors))


def test_interrupted_and_resumed_equals_uninterrupted() -> None:
    whole = evaluate(replace(BASE, output="whole"), Interrupted(10_000))
    with pytest.raises(KeyboardInterrupt):
        evaluate(replace(BASE, output="cut"), Interrupted(9))
    kept = lines("cut")
    assert 0 < len(kept) < 40
    Path("cut/episodes.jsonl").write_text("\n".join(kept)[:-20])  # the last line was being written
    resumed = evaluate(replace(BASE, output="cut"), Interrupted(10_000))
    assert lines("cut")[: len(kept) - 1] == kept[:-1]
    assert len(lines("cut")) == 40
    assert numbers(resumed) == numbers(whole)


def test_a_finished_evaluation_is_not_played_again_and_can_grow() -> None:
    first = evaluate(replace(BASE, episodes=10))
    assert numbers(evaluate(replace(BASE, episodes=10), Never(first))) == numbers(first)
    grown = evaluate(replace(BASE, episodes=25))
    assert len(lines("out")) == 25
    assert numbers(grown) == numbers(evaluate(replace(BASE, episodes=25, output="fresh")))
    assert numbers(evaluate(replace(BASE, episodes=10))) == numbers(first)


class Never:
    """Has the signature of the agent that was measured, and must not be asked."""

    def __init__(self, report: EvaluationReport) -> None:
        self.signature = report.signature.split("agent:")[1].split("|")[0]

    def act(self, conversations: Any) -> list[Reply]:
        raise AssertionError("played again")


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"max_turns": 3}, {"simulator": "scripted"}, {"agent": "eval_agents:constant"}]
)
def test_another_measurement_does_not_mix_in(change: dict[str, Any]) -> None:
    evaluate(replace(BASE, episodes=2))
    before = lines("out")
    with pytest.raises(DuologueError, match=r"holds another evaluation: .+ there, .+ here\. .*--overwrite\.$"):
        evaluate(replace(BASE, episodes=2, **change))
    assert lines("out") == before
    evaluate(replace(BASE, episodes=3, overwrite=True, **change))
    assert len(lines("out")) == 3


def test_without_resume_nothing_is_touched() -> None:
    evaluate(replace(BASE, episodes=2))
    with pytest.raises(DuologueError, match=r"has 2 episodes\. Give another output folder, --resume or --overwrite"):
        evaluate(replace(BASE, episodes=2, resume=False))


def test_a_damaged_line_is_named() -> None:
    evaluate(replace(BASE, episodes=3))
    rows = lines("out")
    Path("out/episodes.jsonl").write_text("\n".join([rows[0], "oops", rows[2], ""]))
    with pytest.raises(DuologueError, match=r"Line 2 of .*Remove the line, or start over with --overwrite"):
        evaluate(replace(BASE, episodes=3))


def test_episodes_of_an_unknown_measurement_are_refused() -> None:
    evaluate(replace(BASE, episodes=2))
    Path("out/run.json").unlink()
    with pytest.raises(DuologueError, match="holds another evaluation: unknown there"):
        evaluate(replace(BASE, episodes=2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"env": "MathChat-v7"}, r"no environment 'MathChat-v7'. Did you mean 'MathChat-v0'\?"),
        ({"env": "MahtChat-v0"}, r"Did you mean 'MathChat-v0'\?"),
        ({"env": "CartPole-v1"}, r"is no dialogue environment .* Choose one of MathChat-v0"),
        ({"simulator": "scriptd"}, r"Did you mean 'scripted'\?"),
        ({"tasks": "math:levl=1"}, r"Did you mean 'level'\?"),
        ({"agent": "eval_agents:adderr"}, r"Did you mean 'adder'\?"),
    ],
)
def test_bad_parts_leave_no_folder(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        evaluate(replace(BASE, **change))
    assert not Path("out").exists()


@pytest.mark.parametrize(
    "change", [{"episodes": 0}, {"num_envs": 0}, {"max_tokens_per_turn": 0}, {"temperature": -1.0}, {"seed": -1}]
)
def test_numbers_that_cannot_work(change: dict[str, Any]) -> None:
    with pytest.raises(DuologueError, match=f"{next(iter(change))} is .* Set it to"):
        replace(BASE, **change)


def test_rollout_can_be_replayed() -> None:
    config = RolloutConfig(agent="eval_agents:adder", episodes=4, output="some/folder/e.jsonl")
    episodes = rollout(config)
    read = [Episode.from_json(json.loads(line)) for line in Path(config.output).read_text().splitlines()]
    assert sorted(e.seed for e in read) == sorted(e.seed for e in episodes)
    assert [e.seed for e in episodes] == [s.seed for s in starts_of(0, 4)]
    user = make_simulator(f"replay:{config.output}", "MathChat-v0")
    opening = user.respond([Dialogue(Task(episodes[0].task_id, "", ""), 0)])[0]
    assert opening.text == episodes[0].messages[0]["content"]
    with pytest.raises(DuologueError, match="exists already"):
        rollout(config)


def test_starts_do_not_depend_on_how_many_there_are() -> None:
    assert starts_of(3, 5) == starts_of(3, 9)[:5]
    assert len({s.seed for s in starts_of(0, 500)} | {s.agent_seed for s in starts_of(0, 500)}) == 1000
