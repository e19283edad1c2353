"""Reading is strict: every fault is found, on its line, with a fix."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duologue.errors import DuologueError
from duologue.simulators.logs import LoggedDialogue, check_logs, files, read_logs, user_script, write_logs
from duologue.simulators.logs.problems import MAX_MESSAGE_CHARS
from duologue.types import Message, StopReason, Task

MakeDialogue = Callable[..., LoggedDialogue]
MakeRow = Callable[..., dict[str, Any]]
WriteRows = Callable[..., Path]

USER = {"role": "user", "content": "hello there"}
AGENT = {"role": "assistant", "content": "Hello."}


def errors(path: Path) -> list[str]:
    return [str(problem) for problem in check_logs(path) if problem.level == "error"]


def test_round_trip(tmp_path: Path, dialogue: MakeDialogue) -> None:
    logs = [dialogue(i, person=f"p{i}", stop=StopReason.USER_SATISFIED, metadata={"r": 0.5, "n": 2}) for i in range(3)]
    logs.append(dialogue(9, messages=(Message(role="user", content="two\u2028lines \x85 \u00e9"),)))
    path = write_logs(tmp_path / "new" / "logs.jsonl", logs)
    assert read_logs(path) == logs
    assert check_logs(path) == []
    assert not list(path.parent.glob("*.partial"))


def test_a_byte_order_mark_blank_lines_and_a_missing_last_line_end_do_no_harm(tmp_path: Path, row: MakeRow) -> None:
    path = tmp_path / "logs.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(row(1)).encode() + b"\r\n\n  \n" + json.dumps(row(2)).encode())
    assert [d.dialogue_id for d in read_logs(path)] == ["d-1", "d-2"]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"task": None}, "'task' is missing or empty"),
        ({"task": {}}, "'task' is missing or empty"),
        ({"task": {"task_id": "t", "instruction": " ", "reference": "r"}}, "'instruction' must be a text"),
        ({"task": {"task_id": "t", "instruction": "i"}}, "'reference' must be a text. Write the gold answer"),
        ({"task": {"task_id": "t", "instruction": "i", "reference": "", "fact": []}}, "Did you mean 'facts'"),
        ({"task": {"task_id": "t", "instruction": "i", "reference": "", "facts": "x"}}, "'facts' must be a list"),
        ({"stop_reason": "user_happy"}, "'stop_reason' is 'user_happy'"),
        ({"stop_reason": ["turn_limit"]}, "'stop_reason' is"),
        ({"stop_reasons": "x"}, "Did you mean 'stop_reason'"),
        ({"instruction": "What?"}, "stands beside the task. Put it inside"),
        ({"dialogue_id": 7}, "'dialogue_id' must be a text"),
        ({"person": 7}, "'person' is 7. Write an id as text"),
        ({"source": 7}, "'source' must be a text"),
        ({"metadata": {"a": [1]}}, "'metadata' must be an object"),
        ({"messages": []}, "at least one message"),
        ({"messages": "hello"}, "'messages' must be a list"),
        ({"messages": [{"role": "system", "content": "x"}, USER]}, "message 0 is a system message. Remove it"),
        ({"messages": [AGENT, USER]}, "message 0 is the assistant's: remove it"),
        ({"messages": [USER, USER, AGENT]}, "messages 0 and 1 are both the user's: merge them"),
        ({"messages": [USER, AGENT, AGENT]}, "messages 1 and 2 are both the assistant's: merge them"),
        ({"messages": [USER, {"role": "bot", "content": "x"}]}, "message 1 has the role 'bot'"),
        ({"messages": [USER, {"role": ["user"], "content": "x"}]}, "message 1 has the role"),
        ({"messages": [USER, "hello"]}, "message 1 is no object"),
        ({"messages": [USER, {"role": "assistant", "content": " \n"}]}, "message 1 is blank"),
        ({"messages": [{"role": "user", "content": None}]}, "message 0 has no 'content'"),
        ({"messages": [{"role": "user", "content": "half \ud83d"}]}, "message 0 holds half a character"),
    ],
)
def test_every_fault_is_found_on_its_line(row: MakeRow, write: WriteRows, change: dict[str, Any], fault: str) -> None:
    path = write(row(1), row(2, **change), row(3))
    [found] = errors(path)
    assert found.startswith("line 2: ")
    assert fault in found
    with pytest.raises(DuologueError, match=r"has 1 error:\n  line 2: .*\nSee all with: duologue logs check"):
        read_logs(path)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"dialogue_id": "x", "ta', "not JSON"),
        ("[1, 2]", "no JSON object, but [1, 2]. Write one object"),
        ("null", "no JSON object"),
        (b'{"dialogue_id": "\xe9"}', "not UTF-8 (byte 17). Save the file in UTF-8"),
        ("[" * 100_000, "not readable as JSON"),
        ('{"env_id": "MathChat-v0", "task_id": "t"}', "holds no task. Make logs with tasks: duologue collect"),
    ],
)
def test_lines_that_are_no_rows(row: MakeRow, write: WriteRows, line: str | bytes, fault: str) -> None:
    [found] = errors(write(row(1), line, row(2)))
    assert found.startswith("line 2: ")
    assert fault in found


def test_a_line_cut_in_writing_is_named_as_such(tmp_path: Path, row: MakeRow) -> None:
    (tmp_path / "cut.jsonl").write_text(json.dumps(row(1)) + "\n" + json.dumps(row(2))[:-30])
    [found] = errors(tmp_path / "cut.jsonl")
    assert "line 2: not JSON" in found
    assert "it was cut in writing" in found


def test_all_faults_of_all_lines_are_listed_and_three_are_quoted(row: MakeRow, write: WriteRows) -> None:
    bad = row(2, person=3, source=4, messages=[AGENT, {"role": "user", "content": ""}])
    path = write("{", bad, row(3), row(4, stop_reason="no"))
    assert [problem.line for problem in check_logs(path)] == [1, 2, 2, 2, 2, 4]
    with pytest.raises(DuologueError, match="has 6 errors") as caught:
        read_logs(path)
    assert str(caught.value).count("  line ") == 3


def test_repeated_ids_and_contents(row: MakeRow, write: WriteRows) -> None:
    found = errors(write(row(1), row(2, dialogue_id="d-1"), row(1, dialogue_id="other"), row(3)))
    assert found == [
        "line 2: dialogue_id 'd-1' stands on line 1 too. Give it another id.",
        "line 3: the same task and words as line 1. Remove one of them.",
    ]


def test_a_message_may_be_long_but_not_too_long(row: MakeRow, write: WriteRows) -> None:
    def says(n: int) -> list[dict[str, str]]:
        return [{"role": "user", "content": "ab" * (n // 2)}]

    path = write(row(1, messages=says(MAX_MESSAGE_CHARS)), row(2, messages=says(10_000_000)))
    [found] = errors(path)
    assert "line 2: message 0 has 10,000,000 characters, over 1,000,000. Shorten or remove it." in found


def test_a_line_over_the_limit_is_read_away_in_pieces(
    row: MakeRow, write: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 1000)
    path = write(row(1), b"x" * 5500, row(2), b'{"a": "' + b"y" * 3000)
    found = check_logs(path)
    assert [problem.line for problem in found] == [2, 4]
    assert all("longer than 1,000 bytes" in problem.what for problem in found)


def test_files_that_are_empty_or_not_there(tmp_path: Path, write: WriteRows) -> None:
    for path in (write(name="empty.jsonl"), write("", "  ", name="blank.jsonl")):
        [problem] = check_logs(path)
        assert problem.line is None
        with pytest.raises(DuologueError, match=r"the file: holds no dialogues\. Write one JSON object"):
            read_logs(path)
    with pytest.raises(DuologueError, match=r"Did you mean 'empty\.jsonl'"):
        read_logs(tmp_path / "emty.jsonl")
    with pytest.raises(DuologueError, match="is no file"):
        check_logs(tmp_path)


def test_warnings_do_not_stop_reading(write: WriteRows, row: MakeRow) -> None:
    russian = [{"role": "user", "content": "Сколько будет половина от двенадцати?"}, AGENT]
    bare = {"task_id": "t", "instruction": "i", "reference": ""}
    path = write(row(1), row(2, messages=russian), row(3), row(4, task=bare))
    found = check_logs(path)
    assert [(p.level, p.line) for p in found] == [("warning", None), ("warning", 2)]
    assert "1 of 4 tasks have no reference, the first on line 4" in str(found[0])
    assert "writes in Cyrillic letters, most others in Latin" in str(found[1])
    assert len(read_logs(path)) == 4


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("how many apples?", "LATIN"),
        ("combien d'élèves y a-t-il ?", "LATIN"),
        ("半分はいくつですか教えてください", "HAN AND KANA"),
        ("what is Привет, a greeting?", "LATIN"),
        ("12 + 30 = ?", None),
        ("\U0001d44e" * 20, None),
        ("ok", None),
    ],
)
def test_scripts(dialogue: MakeDialogue, text: str, script: str | None) -> None:
    said = (Message(role="user", content=text), Message(role="assistant", content="Ответ: шесть, я думаю."))
    assert user_script(dialogue(messages=said)) == script


def test_the_assistants_script_and_what_stands_far_behind_do_not_count(dialogue: MakeDialogue) -> None:
    said = (Message(role="user", content="abc " * 1000 + "я" * 100_000),)
    assert user_script(dialogue(messages=said)) == "LATIN"
    assert user_script(dialogue(task=Task("t", "Половина от двенадцати?", "6"))) == "LATIN"
