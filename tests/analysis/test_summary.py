"""What the report counts, on episodes made by hand."""

import json
from collections.abc import Callable

import pytest
from rich.console import Console

from duologue.analysis import markdown, summarise, table, transcript
from duologue.errors import DuologueError
from duologue.types import Episode, Message, StopReason, Task

MakeEpisode = Callable[..., Episode]
TASK = Task("t", "What is a plus b?", "5", facts=("a is 2.", "b is 3."))
LEAKY: tuple[Message, ...] = (
    {"role": "user", "content": "What is a plus b? It is 5."},
    {"role": "assistant", "content": "The answer is 5."},
)


def test_unscored_is_not_zero(episode: MakeEpisode) -> None:
    report = summarise(
        [episode(0, 1.0), episode(1, 0.0), episode(2, None, error="boom"), episode(3, None, error="boom")], "s"
    )
    assert (report.scored, report.unscored) == (2, 2)
    assert (report.score.value, report.score.n) == (0.5, 2)
    assert report.scores == {0: 1.0, 1: 0.0}
    assert report.errors == {"boom": 2}
    reasons = {reason: estimate.value for reason, estimate in report.stop_reasons.items()}
    assert reasons == {"user_satisfied": 0.5, "policy_error": 0.5}


def test_all_unscored(episode: MakeEpisode) -> None:
    report = summarise([episode(0, None, error="boom")], "s")
    assert str(report.score) == "n/a (n=0)"
    assert "1 x boom" in markdown(report)
    json.dumps(report.to_json(), allow_nan=False)


def test_turns_words_and_notes(episode: MakeEpisode) -> None:
    report = summarise(
        [episode(0, user_notes={"reveal": 2.0}), episode(1, user_notes={"reveal": 1.0, "doubt": 1.0})], "s"
    )
    assert report.turns.value == 1
    assert report.assistant_words.value == 4
    assert report.user_words.value == 3  # (5 + 1) words in 2 turns
    assert report.user_notes == {"doubt": 1.0, "reveal": 3.0}
    assert report.assistant_tokens is None


def test_tokens_are_those_that_were_sampled(episode: MakeEpisode) -> None:
    tokens = {
        "prompt_ids": (1, 2),
        "completion_ids": (3, 4, 5),
        "completion_mask": (1, 0, 1),
        "logprobs": (-1.0, 0.0, -1.0),
    }
    report = summarise([episode(0, **tokens), episode(1, **tokens)], "s")
    assert report.assistant_tokens is not None
    assert report.assistant_tokens.value == 2


def test_leaks_are_counted_per_user_turn(episode: MakeEpisode) -> None:
    clean, leaky = episode(0), episode(1, messages=LEAKY)
    report = summarise([clean, leaky], "s", lambda task_id: TASK)
    assert report.user_leaks is not None
    assert report.user_leaks.value == pytest.approx(1 / 3)  # one of 2 + 1 user turns
    none = summarise([clean], "s", lambda task_id: TASK).user_leaks
    assert none is not None
    assert none.value == 0 < none.high
    assert summarise([clean], "s").user_leaks is None


def test_what_measures_what(episode: MakeEpisode) -> None:
    assert summarise([episode()], "s").metric == "accuracy"
    assert summarise([episode(env_id="MediumDocEditChat-v0")], "s").metric == "BLEU"
    assert summarise([episode(env_id="Mine-v0")], "s").metric == "reward"


@pytest.mark.parametrize("envs", [(), ("A-v0", "B-v0")])
def test_one_environment_at_a_time(episode: MakeEpisode, envs: tuple[str, ...]) -> None:
    with pytest.raises(DuologueError, match=f"come from {len(envs)} environments"):
        summarise([episode(env_id=env) for env in envs], "s")


def test_table_and_markdown_say_the_same(episode: MakeEpisode) -> None:
    report = summarise(
        [episode(0), episode(1, 0.0), episode(2, None, error="[bold]boom[/bold] \x1b[2J")], "sig:[x]|n:3"
    )
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table(report))
    console.file.close()
    shown, written = console.export_text(), markdown(report)
    for text in (str(report.score), "2 / 1", "ended: policy_error", "sig:[x]|n:3", "1 x [bold]boom[/bold] \\x1b[2J"):
        assert text in shown
        assert text in written


def test_only_the_most_frequent_errors_are_shown(episode: MakeEpisode) -> None:
    errors = ["a", "a", "b", "b", "c", "c", "d", "e"]
    written = markdown(summarise([episode(i, None, error=error) for i, error in enumerate(errors)], "s"))
    assert "- 2 x c\n- and 2 more kinds of error" in written


def test_transcript(episode: MakeEpisode) -> None:
    said: tuple[Message, ...] = (
        {"role": "user", "content": "hi\nthere"},
        {"role": "assistant", "content": "\x1b[31mred\x07"},
    )
    text = transcript(episode(7, None, messages=said, error="The agent broke. Mend it."))
    assert text == (
        "--- MathChat-v0, t, seed 7: not scored ---\n\nuser: hi\nthere\n\nassistant: \\x1b[31mred\\x07\n\n"
        f"[policy_error] {StopReason.POLICY_ERROR.sentence}\n\nThe agent broke. Mend it."
    )
