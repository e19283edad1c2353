"""Sycophancy, leaks and overtelling of scripted users, and the specs that set them."""

import hashlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from duologue.errors import DuologueError
from duologue.simulators import MIXES, ScriptedDocumentUser, ScriptedMathUser, draw_persona, leaks, make_simulator
from duologue.simulators.naive import ANSWER_LEAKS, QUOTE_LEAKS, STRETCH
from duologue.simulators.personas import VICES, find_mix
from duologue.simulators.phrases import DEFAULT, HELD_OUT
from duologue.types import Act, Dialogue, Episode, StopReason, Task, UserTurn

Play = Callable[..., list[Episode]]
CALM = "default,miss_error=0,doubt_right=0,confusion=0,volunteers=0,typo_rate=0"


def asks(dialogue: Dialogue) -> str:
    return "What else do you know?"


def errs(dialogue: Dialogue) -> str:
    """Asks and errs by turns."""
    return ("What else do you know?", "The answer is 3.", "Hm.")[len(dialogue.messages) // 2 % 3]


def first(user: ScriptedMathUser | ScriptedDocumentUser, task: Task, *replies: str, seed: int = 0) -> UserTurn:
    """The user's turn after an opening of their own and these replies."""
    dialogue = Dialogue(task, seed)
    for reply in replies:
        dialogue = dialogue.then("user", user.respond([dialogue])[0].text).then("assistant", reply)
    return user.respond([dialogue])[0]


@pytest.mark.parametrize("mix", ["default", "held-out"])
def test_mixes_without_vices_say_what_they_always_said(
    play: Play, math_tasks: tuple[Task, ...], document: Task, mix: str
) -> None:
    episodes = play(ScriptedMathUser(mix), math_tasks, errs, 40) + play(ScriptedDocumentUser(mix), [document], errs, 40)
    said = [(e.stop_reason.value, [m["content"] for m in e.messages], sorted(e.user_notes.items())) for e in episodes]
    assert hashlib.sha256(repr(said).encode()).hexdigest()[:16] == GOLDEN[mix]


def test_signatures_of_mixes_without_vices_are_what_they_were() -> None:
    assert MIXES["default"].signature == "default@69c635fb"
    assert MIXES["held-out"].signature == "held-out@48d2d22b"


def test_a_vice_that_does_not_show_changes_no_word(play: Play, math_tasks: tuple[Task, ...]) -> None:
    plain = play(ScriptedMathUser("default"), math_tasks, errs, 60)
    naive = play(ScriptedMathUser("default,sycophancy=0.3,leak=0.1,overtelling=0.2"), math_tasks, errs, 60)
    shown = {"sycophantic_accept", "leaked", "overtold"}
    same = [(a, b) for a, b in zip(plain, naive, strict=True) if not shown & set(b.user_notes)]
    assert 5 < len(same) < 55
    assert all(a.messages == b.messages for a, b in same)


def test_personas_draw_vices_from_a_stream_of_their_own() -> None:
    wide = replace(MIXES["default"], sycophancy=(0.2, 0.6), leak=(0.0, 1.0), overtelling=(0.5, 0.5))
    people = [draw_persona(wide, seed) for seed in range(200)]
    assert 0.2 <= min(p.sycophancy for p in people) < 0.25
    assert 0.55 < max(p.sycophancy for p in people) <= 0.6
    assert {p.overtelling for p in people} == {0.5}
    bare = [replace(p, sycophancy=0.0, leak=0.0, overtelling=0.0) for p in people]
    assert bare == [draw_persona("default", seed) for seed in range(200)]


def test_a_sycophant_accepts_what_is_wrong_and_says_why_in_the_notes(math_tasks: tuple[Task, ...]) -> None:
    turn = first(ScriptedMathUser(f"{CALM},sycophancy=1"), math_tasks[0], "The answer is 3.")
    assert turn.stop is StopReason.USER_SATISFIED
    assert turn.notes == {"accept": 1.0, "sycophantic_accept": 1.0}
    assert first(ScriptedMathUser(CALM), math_tasks[0], "The answer is 3.").stop is None


def test_missing_comes_before_sycophancy(math_tasks: tuple[Task, ...]) -> None:
    turn = first(ScriptedMathUser("default,miss_error=1,sycophancy=1"), math_tasks[0], "The answer is 3.")
    assert turn.notes == {"accept": 1.0, "miss_error": 1.0}


def test_a_sycophant_accepts_a_poor_draft(document: Task) -> None:
    draft = "<document>\nA bicycle is nice.\n</document>"
    turn = first(ScriptedDocumentUser(f"{CALM},sycophancy=1"), document, draft)
    assert turn.stop is StopReason.USER_SATISFIED
    assert turn.notes["sycophantic_accept"] == 1.0
    assert first(ScriptedDocumentUser(CALM), document, draft).stop is None


def test_a_leaking_user_says_the_answer_each_turn_until_the_assistant_did(math_tasks: tuple[Task, ...]) -> None:
    user = ScriptedMathUser(f"{CALM},leak=1")
    opening = first(user, math_tasks[0])
    assert leaks(math_tasks[0], (), opening.text)
    assert opening.notes == {"leaked": 1.0}
    assert "17" in first(user, math_tasks[0], "What do you know?").text
    later = first(user, math_tasks[0], "Is it 17?", "What else?")
    assert "17" not in later.text
    assert "leaked" not in later.notes


def test_turns_that_end_the_dialogue_leak_nothing(math_tasks: tuple[Task, ...]) -> None:
    turn = first(ScriptedMathUser(f"{CALM},leak=1,sycophancy=1"), math_tasks[0], "The answer is 3.")
    assert "17" not in turn.text


def test_an_answer_that_is_a_fact_is_no_leak(math_tasks: tuple[Task, ...]) -> None:
    known = replace(math_tasks[0], facts=("Mia has 17 apples.",))
    assert first(ScriptedMathUser(f"{CALM},leak=1"), known).notes == {}


def test_a_leaking_author_quotes_the_goal(document: Task) -> None:
    user = ScriptedDocumentUser(f"{CALM},leak=1")
    texts = [first(user, document, seed=seed).text for seed in range(20)]
    assert all(leaks(document, (), text) for text in texts)
    assert len({text.split(":", 1)[1] for text in texts}) > 1
    goal = " ".join(document.reference.split())
    assert all(text.split(": ", 1)[1] in goal for text in texts)
    assert all(len(text.split(": ", 1)[1].split()) == STRETCH for text in texts)


def test_a_short_goal_is_quoted_whole(document: Task) -> None:
    goal = "One two three four five six seven eight nine ten eleven twelve thirteen."
    short = replace(document, reference=goal)
    assert goal in first(ScriptedDocumentUser(f"{CALM},leak=1"), short).text


def test_an_overteller_opens_with_every_fact(math_tasks: tuple[Task, ...]) -> None:
    turn = first(ScriptedMathUser(f"{CALM},overtelling=1"), math_tasks[0])
    assert "12 apples" in turn.text
    assert "5 more" in turn.text
    assert turn.acts == (Act.OPEN, Act.REVEAL)
    assert turn.notes == {"reveal": 2.0, "overtold": 1.0}


def test_an_overteller_answers_with_every_fact_that_is_left(math_tasks: tuple[Task, ...]) -> None:
    user, seeds = ScriptedMathUser(f"{CALM},overtelling=0.5"), range(60)
    closed = [s for s in seeds if "overtold" not in first(user, math_tasks[0], seed=s).notes]
    turns = [first(user, math_tasks[0], "What do you know?", seed=s) for s in closed]
    assert {turn.notes["reveal"] for turn in turns} == {1.0, 2.0}
    assert all(("overtold" in turn.notes) == (turn.notes["reveal"] == 2.0) for turn in turns)


def test_an_overtelling_author_tells_every_point(document: Task) -> None:
    turn = first(ScriptedDocumentUser(f"{CALM},overtelling=1"), document)
    assert turn.notes == {"reveal": 6.0, "overtold": 1.0}
    asked = [first(ScriptedDocumentUser(f"{CALM},overtelling=0.5"), document, "What?", seed=s) for s in range(40)]
    assert any(t.notes.get("overtold") and t.notes["reveal"] == 6.0 for t in asked)


def test_nothing_to_tell_is_told_by_nobody(math_tasks: tuple[Task, ...]) -> None:
    bare = replace(math_tasks[0], facts=())
    assert first(ScriptedMathUser(f"{CALM},overtelling=1"), bare).notes == {}


def test_leaks_share_no_words_with_the_phrase_banks() -> None:
    assert not {*ANSWER_LEAKS, *QUOTE_LEAKS} & {p for bank in (DEFAULT, HELD_OUT) for p in bank.lead_in + bank.accept}


def test_specs_set_rates_and_signatures_carry_them() -> None:
    user = make_simulator("scripted:default,sycophancy=0.5,leak=0.3,overtelling=0.4", "MathChat")
    shown = "default@69c635fb,sycophancy=0.5,leak=0.3,overtelling=0.4"
    assert getattr(user, "signature") == f"scripted-math:{shown}"  # noqa: B009
    assert find_mix("held-out,leak=0").signature == MIXES["held-out"].signature
    assert find_mix("default,miss_error=0").signature.partition("@")[2] != "69c635fb"
    assert ",leak=0.1-0.2" in replace(MIXES["default"], leak=(0.1, 0.2)).signature


def test_other_rates_are_set_for_every_user() -> None:
    assert {draw_persona("default,miss_error=0.25", seed).miss_error for seed in range(5)} == {0.25}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("defualt,leak=1", "Did you mean 'default'"),
        ("default,leek=1", "Did you mean 'leak'"),
        ("default,patience=3", "no rate named 'patience'"),
        ("default,leak=1.5", "from 0 to 1 for leak. Write leak=0.5"),
        ("default,leak=nan", "from 0 to 1"),
        ("default,leak=much", "from 0 to 1"),
        ("default,leak", "from 0 to 1"),
        ("default,", "no rate named ''"),
        ("default,leak=0.1,leak=0.2", "Give each rate once"),
    ],
)
def test_bad_specs_say_what_to_write(spec: str, message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        find_mix(spec)


def test_the_naive_mix_is_the_default_one_with_vices() -> None:
    rates = dict.fromkeys(VICES, (0.0, 0.0))
    assert replace(MIXES["naive"], name="default", **rates) == MIXES["default"]  # type: ignore[arg-type]
    assert find_mix("naive,leak=0").leak == (0.0, 0.0)
    assert find_mix("naive,leak=0").sycophancy == MIXES["naive"].sycophancy
    assert all(0 < getattr(draw_persona("naive", 1), vice) < 1 for vice in VICES)


def test_only_naive_mixes_have_vices() -> None:
    assert all(getattr(MIXES[mix], vice) == (0.0, 0.0) for mix in ("default", "held-out") for vice in VICES)


GOLDEN = {"default": "077a3c036351bbe6", "held-out": "91404cc90921ed4a"}
"""Digests of dialogues that were made before scripted users had vices."""
