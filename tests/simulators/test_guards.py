from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from duologue.simulators.guards import GuardedUser, flips_role, strip_control
from duologue.simulators.leaks import leaked_spans, leaks
from duologue.types import Dialogue, StopReason, Task, UserTurn

from .conftest import FakeUser


def ongoing(task: Task, reply: str = "What do you know?") -> Dialogue:
    return Dialogue(task, 0).then("user", "can you help me with mia's apples").then("assistant", reply)


def saying(first: str, second: str | None = None) -> FakeUser:
    """A user who says the second text when asked with another seed."""
    return FakeUser(lambda d: UserTurn(first if d.seed == 0 or second is None else second))


def guarded(task: Task, first: str, second: str | None = None, resample: bool = True) -> UserTurn:
    return GuardedUser(saying(first, second), resample).respond([ongoing(task)])[0]


def test_a_clean_turn_passes_untouched(math_task: Task) -> None:
    user = saying("she starts with 12 apples")
    turn = GuardedUser(user).respond([ongoing(math_task)])[0]
    assert turn == UserTurn("she starts with 12 apples")
    assert len(user.batches) == 1


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("How can I help you today?", "guard_role_flip"),
        ("So, the answer is 3.", "guard_role_flip"),
        ("can you help me with Mia's apples?", "guard_restart"),
        ("I think it is 17", "guard_leak"),
    ],
)
def test_faults_are_sampled_again_and_counted(math_task: Task, text: str, note: str) -> None:
    turn = guarded(math_task, text, "hmm no")
    assert turn == UserTurn("hmm no", notes={note: 1.0, "guard_resampled": 1.0})


def test_repetition_of_an_earlier_turn(math_task: Task) -> None:
    d = ongoing(math_task).then("user", "I do not get what you mean").then("assistant", "Let me explain.")
    turn = GuardedUser(saying("i do not get what you mean!", "which part?")).respond([d])[0]
    assert turn.notes == {"guard_repeat": 1.0, "guard_resampled": 1.0}
    short = GuardedUser(saying("ok yes")).respond([d.then("user", "ok yes").then("assistant", "Fine?")])[0]
    assert short.notes == {}


def test_only_faulty_rows_are_sampled_again(math_task: Task) -> None:
    user = FakeUser(lambda d: UserTurn("it's 17" if d.seed == 1 else "no idea"))
    dialogues = [replace(ongoing(math_task), seed=seed) for seed in range(3)]
    turns = GuardedUser(user).respond(dialogues)
    assert [len(batch) for batch in user.batches] == [3, 1]
    assert user.batches[1][0].messages == dialogues[1].messages
    assert [turn.notes.get("guard_resampled", 0.0) for turn in turns] == [0.0, 1.0, 0.0]


def test_a_leak_that_stays_is_masked(math_task: Task) -> None:
    turn = guarded(math_task, "isn't it 17?", "it is seventeen, right?")
    assert turn.text == "it is [...], right?"
    assert turn.notes == {"guard_leak": 1.0, "guard_resampled": 1.0}


def test_the_cleaner_sample_is_kept(math_task: Task) -> None:
    assert guarded(math_task, "hm, 17", "How can I help? The answer is 17.").text == "hm, [...]"


def test_without_resampling_it_masks_and_counts(math_task: Task) -> None:
    user = saying("it's 17")
    turn = GuardedUser(user, resample=False).respond([ongoing(math_task)])[0]
    assert turn == UserTurn("it's [...]", notes={"guard_leak": 1.0})
    assert len(user.batches) == 1


def test_inner_notes_and_stop_survive(math_task: Task) -> None:
    inner = FakeUser(lambda d: UserTurn("bye<|im_end|>", StopReason.USER_GAVE_UP, notes={"unparsed": 1.0}))
    turn = GuardedUser(inner).respond([ongoing(math_task)])[0]
    assert turn == UserTurn("bye", StopReason.USER_GAVE_UP, notes={"unparsed": 1.0, "guard_control": 1.0})


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("hi<|im_end|>", "hi"),
        ("<|im_start|>user\nhi", "user\nhi"),
        ("[INST] hi [/INST]</s>", "hi"),
        ("hi<end_of_turn><eos>", "hi"),
        ("User: hi", "hi"),
        ("**Student:** hi", "hi"),
        ("hi\nAssistant: The answer is 3.\nUser: ok", "hi"),
        ("<think>I must not say 17</think>hi", "hi"),
        ("is 3 < 4 | 5 > 2 ok? <s", "is 3 < 4 | 5 > 2 ok? <s"),
    ],
)
def test_control_text_is_stripped(text: str, clean: str) -> None:
    assert strip_control(text) == clean


def test_nothing_left_after_stripping_is_dots(math_task: Task) -> None:
    assert guarded(math_task, "<|im_end|>").text == "..."


def test_signature(math_task: Task) -> None:
    assert GuardedUser(saying("x")).signature == "FakeUser|guarded"
    assert GuardedUser(saying("x"), resample=False).signature == "FakeUser|guarded-no-resample"


@pytest.mark.parametrize(
    ("gold", "text", "hit"),
    [
        ("17", "maybe 17?", True),
        ("17", "maybe 17.0", True),
        ("17", "170 or 1.17 or 117", False),
        ("17", "seventeen", True),
        ("12", "she starts with 12", False),  # a fact holds it
        ("0.5", "a half, so 1/2", True),
        ("1,000", "1000", True),
        ("-3", "is it -3", True),
        ("-3", "5-3 or 3", False),
        ("x+1", "is it $x + 1$?", True),
        ("x+1", "is it x+12", False),
        (r"\frac{1}{2}\pi", r"is it $\dfrac{1}{2} \pi$", True),
        ("no solution", "there is no solution I guess", True),
        ("B", "I got a book", False),
        ("B", "the answer is (B)", True),
        ("", "anything", False),
    ],
)
def test_answer_leaks(math_task: Task, gold: str, text: str, hit: bool) -> None:
    assert leaks(replace(math_task, reference=gold), [], text) is hit


def test_no_leak_once_the_assistant_said_it(math_task: Task) -> None:
    assert not leaks(math_task, ongoing(math_task, "It is 17.").messages, "ok 17")
    assert leaks(math_task, ongoing(math_task).then("user", "17?").messages, "17!")


def test_document_leaks_are_runs_of_eight_words(document_task: Task) -> None:
    copied = "I want: bought a red bicycle. the ride along the river takes 25 minutes!! Thanks"
    ((start, end),) = leaked_spans(document_task, [], copied)
    assert copied[start:end] == "bought a red bicycle. the ride along the river takes 25 minutes"
    assert not leaks(document_task, [], "the ride along the river takes 25 minutes"[:30])
    draft = ongoing(document_task, document_task.reference)
    assert not leaks(document_task, draft.messages, copied)
    told = replace(document_task, facts=(document_task.reference,))
    assert not leaks(told, [], copied)


def test_long_texts_are_checked_quickly(math_task: Task) -> None:
    hard = replace(math_task, reference="x+1")
    assert leaks(hard, [], "word " * 5000 + "x+1")


def human_turns(folder: Path) -> Iterator[tuple[dict[str, str], str]]:
    import json

    for name in ("math_dialogues_dev.jsonl", "document_dialogues_dev.jsonl"):
        for line in (folder / "simulatorarena" / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            yield from ((row, m["content"]) for m in row["messages"] if m["role"] == "user")


def test_people_are_seldom_taken_for_assistants(shared_data: Path) -> None:
    texts = [text for _, text in human_turns(shared_data)]
    assert len(texts) > 300
    assert sum(map(flips_role, texts)) / len(texts) < 0.02
    assert sum(strip_control(text) != text.strip() for text in texts) / len(texts) < 0.02
