"""Damaged files of JSON: file, line and fix are named; half a last line is no damage."""

from pathlib import Path
from typing import Any

import pytest

from duologue.errors import DuologueError
from duologue.json_files import drop_cut_line, read_line, read_lines, read_object

FIX = "Remove it."


def read(path: Path) -> list[int]:
    return read_lines(path, lambda row: int(row["n"]), "number", FIX)


def test_whole_lines_are_read_and_half_a_last_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"n": 1}\n\n{"n": 2, "text": "a\u2028b"}\n{"n": 3', encoding="utf-8")
    assert read(path) == [1, 2]
    path.write_text("")
    assert read(path) == []


def test_a_whole_last_line_needs_no_line_end(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"n": 1}\n{"n": 2}')  # as an editor may leave it
    assert read(path) == [1, 2]
    path.write_text('{"n": 1}\n{"m": 2}')
    with pytest.raises(DuologueError, match=r"^Line 2 of"):
        read(path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"oops", "Expecting value"),
        (b'{"n": 1}{"n": 2}', "Extra data"),
        (b"\0\0\0\0", ""),
        (b'{"n": "\xff"}', "utf-8"),
        (b"[1]", r"it is \[1\]"),
        (b"3", "it is 3"),
        (b"{}", "it has no 'n'"),
        (b'{"n": "x"}', "invalid literal"),
        (b'{"n": null}', "NoneType"),
        (b"[" * 100_000, "recursion"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes, said: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"n": 1}\n' + line + b'\n{"n": 3}\n')
    with pytest.raises(DuologueError, match=rf"^Line 2 of '.*rows\.jsonl' is no number \(.*{said}.*\)\. Remove it\.$"):
        read(path)


def test_a_fault_of_ours_is_not_taken_for_the_files() -> None:
    def broken(row: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read_line("x", 1, "{}", broken, "row", FIX)


@pytest.mark.parametrize("text", ["", "[]", '{"a": ', "nope"])
def test_a_file_that_is_no_object(tmp_path: Path, text: str) -> None:
    path = tmp_path / "done.json"
    path.write_text('{"a": 1}\n')
    assert read_object(path, FIX) == {"a": 1}
    path.write_text(text)
    with pytest.raises(DuologueError, match=r"done\.json' holds no JSON object \(.+\)\. Remove it\.$"):
        read_object(path, FIX)


@pytest.mark.parametrize(("text", "left"), [("a\nb", "a\n"), ("a\nb\n", "a\nb\n"), ("a", ""), ("", "")])
def test_half_a_line_is_removed(tmp_path: Path, text: str, left: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    drop_cut_line(path)
    assert path.read_text() == left
