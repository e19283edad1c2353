"""Labels of contexts, replies and user turns, worked out by hand."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from duologue.analysis.shift.states import (
    OVER,
    answered,
    context_state,
    context_tokens,
    reached,
    reply_act,
    seen_of,
    user_act,
    with_answer,
)
from duologue.analysis.user_rates import Seen
from duologue.errors import DuologueError
from duologue.simulators.logs import LoggedDialogue
from duologue.types import Episode, StopReason, Task, UserTurn

from .conftest import ASK, NO, TASK, WRONG, episode

Look = Callable[[Episode], Seen]


def test_contexts(seen: Look) -> None:
    one = seen(episode(0, [ASK, WRONG, ASK], [TASK.facts[0], NO, TASK.facts[1]]))
    assert [context_state(one, t) for t in range(4)] == [
        "0 told, no offer",
        "1 told, no offer",
        "1 told, wrong offer not accepted",
        OVER,
    ]
    assert [reached(one, t) for t in range(4)] == [True, True, True, False]


def test_all_told_and_a_right_answer_that_is_doubted(seen: Look) -> None:
    texts = [" ".join(TASK.facts), "Hmm, are you sure?", ""]
    one = seen(episode(0, [ASK, "The answer is 17.", ASK], texts))
    assert context_state(one, 1) == "all told, no offer"
    assert context_state(one, 2) == "all told, right offer not accepted"


def test_an_accepted_offer_after_which_the_user_goes_on(seen: Look) -> None:
    one = seen(episode(0, [WRONG, ASK], ["Great, thanks.", ""]))
    assert context_state(one, 1) == "0 told, wrong offer accepted"


def test_documents() -> None:
    goal = "We meet at the old mill on Sunday. Bring warm shoes and a lamp. The walk takes three hours in all."
    task = Task("walk", "A note.", goal, outline=("the old mill on Sunday", "warm shoes and a lamp", "three hours"))
    texts = ["What should it say?", f"<document>{goal}</document>", "What else?"]
    one = episode(0, texts, ["It should say: the old mill on Sunday.", "No, not yet.", ""])
    doc = Seen(replace(one, env_id="MediumDocEditChat-v0", task_id="walk"), task)
    assert [context_state(doc, t) for t in range(3)] == [
        "none told, no offer",
        "some told, no offer",
        "some told, right offer not accepted",
    ]
    assert reply_act(doc, "<document>Hello.</document>") == "wrong offer"


@pytest.mark.parametrize(
    ("text", "act"), [(WRONG, "wrong offer"), ("The answer is 17.", "right offer"), (ASK, "asks"), ("Fine.", "talks")]
)
def test_replies(seen: Look, text: str, act: str) -> None:
    assert reply_act(seen(episode(0, [ASK], [NO])), text) == act


@pytest.mark.parametrize(
    ("answer", "act"),
    [
        (UserTurn(TASK.facts[0]), "speaks, tells 1"),
        (UserTurn("What?"), "asks, tells 0"),
        (UserTurn("Yes, perfect."), "accepts, tells 0"),
        (UserTurn("Bye", StopReason.USER_GAVE_UP), "ends (user_gave_up)"),
        (UserTurn("", StopReason.USER_SATISFIED), "leaves (user_satisfied)"),
    ],
)
def test_user_turns(seen: Look, answer: UserTurn, act: str) -> None:
    one = with_answer(seen(episode(0, [ASK, WRONG], [NO, NO])), 0, answer)
    assert answered(one, 0)
    assert user_act(one, 0) == act


def test_nobody_answers_at_the_limit(seen: Look) -> None:
    one = seen(episode(0, [ASK, WRONG], [NO, ""]))
    assert [answered(one, t) for t in range(3)] == [True, False, False]


def test_logs_bring_task_score_and_a_seed_of_their_own() -> None:
    said = episode(0, [ASK], []).messages
    log = LoggedDialogue("d1", TASK, said, metadata={"reward": 0.5})
    found = seen_of(log, "MathChat-v0", lambda _: pytest.fail("not asked"))
    assert (found.task, found.episode.reward, found.episode.stop_reason) == (TASK, 0.5, StopReason.TURN_LIMIT)
    other = seen_of(replace(log, dialogue_id="d2", metadata={}), "MathChat-v0", lambda _: TASK)
    assert other.episode.reward is None
    assert other.episode.seed != found.episode.seed


def test_tokens_tell_who_said_what(seen: Look) -> None:
    one = seen(episode(0, [ASK, ASK], [TASK.facts[1], NO]))
    tokens = context_tokens(one, 1, "1 told, no offer")
    assert {"user mia", "assistant know", "last mia buys", "1 told, no offer"} <= set(tokens)
    assert "assistant mia" not in tokens
    assert context_tokens(one, 5, OVER) == [OVER]


def test_other_environments_are_refused(seen: Look) -> None:
    other = seen(replace(episode(0, [ASK], [NO]), env_id="Chess-v0"))
    with pytest.raises(DuologueError, match="Chess"):
        context_state(other, 0)
