"""Adapters, on rows made by hand and on the real files."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from duologue.envs.tasks.adapters import boxed
from duologue.errors import DuologueError, MissingExtraError
from duologue.simulators.logs import (
    LoggedDialogue,
    check_logs,
    import_logs,
    imported,
    read_logs,
    summarise_logs,
    write_logs,
)
from duologue.simulators.logs.importers import HUB_SOURCES, sources
from duologue.simulators.logs.importers.building import said
from duologue.types import StopReason

WriteRows = Callable[..., Path]
TALK = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello."}]
MATH = {"problem": "What is 1/2 + 1/2?", "solution": r"It is $\boxed{1}$.", "workerId": "w-1", "level": "Level 3"}
DOCUMENT = {"intent": "An apology", "workerId": "w-2", "document_type": "email", "bullet_points": ["Who?", "Why?"]}


def test_what_is_said_is_brought_into_turns_and_counted() -> None:
    turns: list[tuple[str, object]] = [
        ("system", "be nice"),
        ("assistant", "Welcome."),
        ("user", " "),
        ("user", "one"),
        ("user", "two"),
        ("assistant", None),
        ("assistant", "Yes?"),
    ]
    messages, counts = said(turns)
    assert [(m["role"], m["content"]) for m in messages] == [("user", "one\ntwo"), ("assistant", "Yes?")]
    assert counts == {"system_dropped": 1, "leading_dropped": 1, "blank_dropped": 2, "merged": 1}
    assert said([("assistant", "Welcome.")]) == ((), {"leading_dropped": 1})


def test_simulator_arena_as_published(write: WriteRows) -> None:
    math = {
        **MATH,
        "user_queries": ["how?", "1"],
        "ai_responses": ["Add them.", None],
        "why_stop": "I felt confident enough to solve the problem.",
        "question_location": "test/algebra/1.json",
        "problem_1_turns": 1,
    }
    document = {
        **DOCUMENT,
        "user_queries": ["write it"],
        "ai_responses": ["Here it is."],
        "why_stop": "I found the AI writing assistant not helpful.",
        "document_history": ["", "Draft", "Final \n"],
        "bullet_points_responses": ["My friend.", ""],
    }
    one, two = import_logs("simulator-arena", write(math, document))
    assert (one.person, one.stop, one.source) == ("w-1", StopReason.USER_SATISFIED, "simulator-arena-math")
    assert (one.task.task_id, one.task.reference) == ("test/algebra/1.json", "1")
    assert [m["content"] for m in one.messages] == ["how?", "Add them.", "1"]
    assert one.metadata == {"level": "Level 3", "problem_1_turns": 1, "blank_dropped": 1}
    assert (two.person, two.stop, two.source) == ("w-2", StopReason.USER_GAVE_UP, "simulator-arena-documents")
    assert (two.task.instruction, two.task.reference) == ("An apology", "Final")
    assert (two.task.outline, two.task.facts) == (("Who?", "Why?"), ("My friend.",))


@pytest.mark.parametrize("why", ["Other reason", "I encountered technical issues with the interface.", None])
def test_simulator_arena_other_reasons_are_not_known(write: WriteRows, why: str | None) -> None:
    [one] = import_logs("simulator-arena", write({**MATH, "messages": TALK, "why_stop": why}))
    assert one.stop is None


@pytest.mark.parametrize(
    ("source", "row", "message"),
    [
        ("simulator-arena", {"messages": TALK}, "line 1: there is no column 'problem'. Add it from MATH"),
        ("simulator-arena", {**MATH, "solution": "x\n" * 40, "messages": TALK}, "holds neither"),
        ("simulator-arena", {**MATH, "messages": ["hi"]}, "'messages' must be a list of messages"),
        ("simulator-arena", {**MATH, "user_queries": "hi", "ai_responses": []}, "must be lists of texts"),
        ("halie", {"messages": TALK}, "has no column 'scenario'"),
        ("bridge", {"lesson_topic": "x", "c_h": [1], "c_r": []}, "column 'c_h' must be a list of lines"),
    ],
)
def test_a_bad_row_is_named(write: WriteRows, source: str, row: Mapping[str, Any], message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        import_logs(source, write(row))


def test_small_sets(write: WriteRows) -> None:
    rows = [{"id": "m", "uid": "u", "problem": "a_lemma.html", "model": "x", "background": "", "messages": TALK}]
    [lemma] = import_logs("math-converse", write(*rows))
    assert (lemma.dialogue_id, lemma.person, lemma.task.instruction) == ("m", "u", "a lemma")
    assert lemma.metadata == {"model": "x"}
    [chat] = import_logs(
        "halie", write({"id": "h", "worker": "w", "scenario": "A cat.", "model": "x", "messages": TALK})
    )
    assert (chat.person, chat.task.instruction, chat.task.reference) == ("w", "A cat.", "")


def test_bridge_pupil_is_the_user(write: WriteRows) -> None:
    def line(who: str, text: str) -> dict[str, str]:
        return {"user": who, "text": text}

    row = {
        "c_id": "c",
        "lesson_topic": "Area",
        "c_h": [line("tutor", "Hello."), line("student", "4"), line("student", "m")],
        "c_r": [line("tutor", "No."), line("tutor", "Try 4 x 3.")],
        "e": "guess",
    }
    silent = {**row, "c_id": "s", "c_h": [line("tutor", "Anyone?")]}
    found = imported("bridge", write(row, {**row, "e": "other"}, silent, {**row, "lesson_topic": "Volume"}))
    assert [m["content"] for m in found.dialogues[0].messages] == ["4\nm", "No.\nTry 4 x 3."]
    assert found.dialogues[0].metadata == {"e": "guess", "leading_dropped": 1, "merged": 2}
    assert [d.dialogue_id for d in found.dialogues] == ["c", "c#2"]
    assert found.left_out == {"no user turn": 1, "the same task and words as another": 1}


def test_collabllm_takes_the_longest_history_with_the_best_reply(write: WriteRows) -> None:
    def row(conv: int, prompt: list[dict[str, str]], completion: str, score: float) -> dict[str, Any]:
        single = {"single_turn_prompt": f"P{conv}", "single_turn_completion": rf"So \boxed{{{conv}}}."}
        return {"conv_id": conv, "prompt": prompt, "completion": completion, "score": score, **single}

    system = {"role": "system", "content": "You are an assistant."}
    longer = [system, *TALK, {"role": "user", "content": "more"}]
    path = write(
        row(1, [system, TALK[0]], "early", 0.9),
        row(1, longer, "worse", 0.2),
        row(1, longer, "better", 0.7),
        row(2, TALK[:1], "only", 0.1),
    )
    one, two = import_logs("collabllm/collabllm-multiturn-math-hard", path)
    assert [m["content"] for m in one.messages] == ["hi", "Hello.", "more", "better"]
    assert one.metadata == {"score": 0.7, "system_dropped": 1}
    assert (one.task.instruction, one.task.reference) == ("P1", "1")
    assert [m["content"] for m in two.messages] == ["hi", "only"]
    [document, _] = import_logs("collabllm/collabllm-multiturn-medium", path)
    assert document.task.reference == r"So \boxed{1}."


def test_oasst_follows_the_best_ranked_path(write: WriteRows) -> None:
    def message(name: str, parent: str | None, text: str, rank: int | None = None, **more: Any) -> dict[str, Any]:
        role = "prompter" if name[0] == "u" else "assistant"
        return {"message_id": name, "parent_id": parent, "text": text, "role": role, "rank": rank, **more}

    path = write(
        message("u1", None, "Why?", user_id="ann", lang="en"),
        message("a1", "u1", "Second best.", 1),
        message("a2", "u1", "Best.", 0),
        message("a3", "u1", "Deleted.", -1, deleted=True),
        message("a4", "u1", "Not ranked."),
        message("u2", "a2", "Thanks.", user_id="bob"),
        message("u3", "a1", "Never reached.", user_id="ann"),
        message("u9", None, "Alone?", user_id="cid", lang="de"),
    )
    one, two = import_logs("OpenAssistant/oasst1", path)
    assert [m["content"] for m in one.messages] == ["Why?", "Best.", "Thanks."]
    assert (one.dialogue_id, one.person, one.task.instruction, one.metadata) == ("u1", None, "Why?", {"language": "en"})
    assert (two.person, len(two.messages)) == ("cid", 1)


def test_wildchat(write: WriteRows) -> None:
    row = {
        "conversation_hash": "h",
        "conversation": [{**m, "hashed_ip": "ip"} for m in TALK],
        "language": "English",
        "toxic": True,
        "model": "gpt-4",
    }
    one, two = import_logs("allenai/WildChat-1M", write(row, {**row, "hashed_ip": "top", "model": "x", "toxic": False,
        "conversation": TALK[::-1] + TALK[:1] + [{"role": "user", "content": "again"}]}))  # fmt: skip
    assert (one.dialogue_id, one.person, one.task.instruction) == ("h", "ip", "hi")
    assert one.metadata == {"model": "gpt-4", "language": "English", "toxic": 1}
    assert (two.dialogue_id, two.person) == ("h#2", "top")
    assert two.metadata["toxic"] == 0
    assert [m["content"] for m in two.messages] == ["hi\nhi\nagain"]


def test_the_hub_streams_only_what_the_limit_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load(dataset_id: str, split: str, streaming: bool) -> Any:
        assert (dataset_id, split, streaming) == ("allenai/WildChat-1M", "train", True)
        for i in range(100):
            asked.append(i)
            yield {"conversation_hash": f"h{i}", "conversation": [{"role": "user", "content": f"hi {i}"}]}

    monkeypatch.setattr(sources, "_load_dataset", lambda: load)
    assert [d.dialogue_id for d in import_logs("allenai/WildChat-1M", limit=3)] == ["h0", "h1", "h2"]
    assert len(asked) <= 4


def test_the_hub_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object, **__: object) -> Any:
        raise ConnectionError("no network")

    monkeypatch.setattr(sources, "_load_dataset", lambda: load)
    with pytest.raises(DuologueError, match=r"ConnectionError: no network.*give the path of one"):
        import_logs("OpenAssistant/oasst1")


def test_without_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"duologue\[hub\]"):
        import_logs("OpenAssistant/oasst1")


@pytest.mark.parametrize(
    ("source", "path", "limit", "message"),
    [
        ("haly", "x", None, "Did you mean 'halie'"),
        ("wildchat", "x", None, "Did you mean 'allenai/WildChat-1M'"),
        ("halie", None, None, "is read from a file. Give its path"),
        ("halie", "x", 0, "limit must be 1 or more"),
        ("halie", "no.jsonl", None, "There is no 'no.jsonl'"),
    ],
)
def test_bad_calls(source: str, path: str | None, limit: int | None, message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        import_logs(source, path, limit)


def test_nothing_said(write: WriteRows) -> None:
    with pytest.raises(DuologueError, match="no dialogue in which a user spoke"):
        import_logs("halie", write({"scenario": "x", "messages": TALK[1:]}))


def test_every_hub_source_reads_a_downloaded_file(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(json.dumps([{"other": 1}]))
    for source in HUB_SOURCES:
        with pytest.raises(DuologueError, match="has no column"):
            import_logs(source, tmp_path / "rows.json")


REAL = {
    "simulatorarena/math_dialogues_dev.jsonl": ("simulator-arena", 25, 276, 0),
    "simulatorarena/document_dialogues_dev.jsonl": ("simulator-arena", 26, 164, 0),
    "mathconverse/dialogues.jsonl": ("math-converse", 77, 260, 25),
    "halie/dialogues.jsonl": ("halie", 189, 2061, 189),
    "bridge/train.json": ("bridge", 339, 518, 0),
}


@pytest.mark.parametrize("name", REAL)
def test_real_files(shared: Path, name: str, tmp_path: Path) -> None:
    source, dialogues, turns, persons = REAL[name]
    found = import_logs(source, shared / name)
    summary = summarise_logs(found)
    assert (summary.dialogues, summary.user_words.n, summary.persons) == (dialogues, turns, persons)
    path = write_logs(tmp_path / "logs.jsonl", found)
    assert not [problem for problem in check_logs(path) if problem.level == "error"]
    assert read_logs(path) == found


def test_real_people(shared: Path) -> None:
    folder = shared / "simulatorarena"
    math, documents = (
        import_logs("simulator-arena", folder / f"{n}_dialogues_dev.jsonl") for n in ("math", "document")
    )
    assert all(d.task.reference == boxed(d.task.solution) for d in math)
    assert all(d.task.reference and d.task.outline for d in documents)
    assert _medians(math) == (11, 7)
    assert _medians(documents) == (6, 18)


def _medians(logs: list[LoggedDialogue]) -> tuple[float, float]:
    summary = summarise_logs(logs)
    return summary.user_turns.median, summary.user_words.median
