import json
from collections.abc import Callable
from pathlib import Path

import pytest

from duologue.errors import DuologueError
from duologue.simulators._random import seed_after_reset
from duologue.simulators.human import HumanUser
from duologue.simulators.replay import ReplayUser
from duologue.types import Dialogue, Episode, Message, StopReason, Task, UserTurn


def typing(*lines: str) -> tuple[Callable[[str], str], list[str]]:
    """A keyboard with these lines, then end of input; and the screen."""
    left = list(lines)

    def read(prompt: str) -> str:
        if not left:
            raise EOFError
        return left.pop(0)

    shown: list[str] = []
    return read, shown


def episode(seed: int, stop: StopReason, *texts: str) -> Episode:
    roles = ("user", "assistant")
    messages = tuple(Message(role=roles[i % 2], content=text) for i, text in enumerate(texts))  # type: ignore[typeddict-item]
    return Episode("MathChat-v0", "apples-1", seed, messages, stop, 1.0)


def test_a_person_is_briefed_once_and_then_reads_replies(math_task: Task) -> None:
    read, shown = typing("hello", "", "   ", "12")
    user = HumanUser(read, shown.append)
    opening = user.respond([Dialogue(math_task, 0)])[0]
    assert opening == UserTurn("hello")
    for part in (math_task.instruction, math_task.reference, *math_task.facts):
        assert part in shown[0]
    shown.clear()
    turn = user.respond([Dialogue(math_task, 0).then("user", "hello").then("assistant", "How many?")])[0]
    assert turn == UserTurn("12")
    assert shown[0] == "assistant> How many?"
    assert math_task.reference not in shown[0]
    assert len(shown) == 3


@pytest.mark.parametrize(
    ("line", "text", "stop"),
    [
        ("/done", "", StopReason.USER_SATISFIED),
        ("/done thanks a lot", "thanks a lot", StopReason.USER_SATISFIED),
        ("/give-up", "", StopReason.USER_GAVE_UP),
        ("/unknown", "/unknown", None),
    ],
)
def test_commands(math_task: Task, line: str, text: str, stop: StopReason | None) -> None:
    read, shown = typing(line)
    turn = HumanUser(read, shown.append).respond([Dialogue(math_task, 0)])[0]
    assert (turn.text, turn.stop) == (text, stop)


def test_end_of_input_gives_up(math_task: Task) -> None:
    read, shown = typing()
    turn = HumanUser(read, shown.append).respond([Dialogue(math_task, 0)])[0]
    assert (turn.text, turn.stop) == ("", StopReason.USER_GAVE_UP)


def play(user: ReplayUser, task: Task, seed: int = 0) -> list[UserTurn]:
    dialogue = Dialogue(task, seed)
    turns: list[UserTurn] = []
    while not turns or turns[-1].stop is None:
        turns.append(user.respond([dialogue])[0])
        dialogue = dialogue.then("user", turns[-1].text).then("assistant", "whatever")
    return turns


def test_an_episode_ends_as_it_was_logged(math_task: Task) -> None:
    user = ReplayUser([episode(0, StopReason.USER_SATISFIED, "hi", "yes?", "12", "17", "thanks")])
    turns = play(user, math_task)
    assert [turn.text for turn in turns] == ["hi", "12", "thanks"]
    assert [turn.stop for turn in turns] == [None, None, StopReason.USER_SATISFIED]


def test_after_the_log_the_user_gives_up(math_task: Task) -> None:
    turns = play(ReplayUser([episode(0, StopReason.TURN_LIMIT, "hi", "yes?", "12", "17")]), math_task)
    assert [turn.text for turn in turns] == ["hi", "12", ""]
    assert turns[-1].stop is StopReason.USER_GAVE_UP
    assert turns[-1].notes == {"log_ended": 1.0}


def test_a_one_word_log_does_not_stop_in_the_opening(math_task: Task) -> None:
    turns = play(ReplayUser([episode(0, StopReason.USER_SATISFIED, "hi")]), math_task)
    assert [(turn.text, turn.stop) for turn in turns] == [("hi", None), ("", StopReason.USER_SATISFIED)]


def test_mappings_of_texts_or_messages(math_task: Task) -> None:
    messages: list[Message] = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "yes?"},
        {"role": "user", "content": "12"},
    ]
    for log in (["hi", "12"], messages):
        assert [turn.text for turn in play(ReplayUser({"apples-1": log}), math_task)] == ["hi", "12", ""]


def test_the_seed_picks_among_logs(math_task: Task) -> None:
    user = ReplayUser([episode(seed, StopReason.TURN_LIMIT, f"hi {seed}") for seed in (10, 11)])
    opening = {seed: user.respond([Dialogue(math_task, seed)])[0].text for seed in (2, 3)}
    assert opening == {2: "hi 10", 3: "hi 11"}
    for seed in (10, 11):
        assert user.respond([Dialogue(math_task, seed_after_reset(seed))])[0].text == f"hi {seed}"


def test_a_seed_that_no_reset_can_have_is_none(math_task: Task) -> None:
    user = ReplayUser([episode(-1, StopReason.TURN_LIMIT, "hi")])
    assert user.respond([Dialogue(math_task, 5)])[0].text == "hi"


def test_unknown_task_and_empty_logs(math_task: Task) -> None:
    with pytest.raises(DuologueError, match="Did you mean 'apples-2'"):
        ReplayUser({"apples-2": ["hi"]}).respond([Dialogue(math_task, 0)])
    with pytest.raises(DuologueError, match="Pass at least one"):
        ReplayUser({"apples-1": [" "]})


def test_files_round_trip(tmp_path: Path, math_task: Task) -> None:
    episodes = [episode(0, StopReason.USER_SATISFIED, "hi", "yes?", "bye")]
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(json.dumps(e.to_json()) for e in episodes) + "\n\n", encoding="utf-8")
    user = ReplayUser.from_jsonl(file)
    assert user.signature == ReplayUser(episodes).signature
    assert [turn.text for turn in play(user, math_task)] == ["hi", "bye"]


def test_bad_files_name_the_line(tmp_path: Path) -> None:
    with pytest.raises(DuologueError, match="There is no file"):
        ReplayUser.from_jsonl(tmp_path / "none.jsonl")
    for line in ("{", "[]", '{"task_id": "x"}'):
        (tmp_path / "bad.jsonl").write_text(line, encoding="utf-8")
        with pytest.raises(DuologueError, match=r"Line 1 of .* is no episode"):
            ReplayUser.from_jsonl(tmp_path / "bad.jsonl")
