from types import SimpleNamespace
from typing import Any

import pytest

from duologue.envs.dynamics import DialogueDynamics, Transition
from duologue.errors import DuologueError
from duologue.rewards.base import Score
from duologue.types import Dialogue, StopReason, UserTurn


def make(fakes: SimpleNamespace, **parts: Any) -> DialogueDynamics:
    known = {"simulator": fakes.Echo(), "reward": fakes.SpeaksSecret()}
    limits = {"max_turns": 3, "max_chars": 60, "call_timeout": 0.2}
    return DialogueDynamics(**(known | limits | parts))


def opened(dynamics: DialogueDynamics, fakes: SimpleNamespace, n: int = 1) -> list[Dialogue]:
    return [t.dialogue for t in dynamics.open([fakes.tasks[i % 2] for i in range(n)], list(range(n)))]


def after(dynamics: DialogueDynamics, fakes: SimpleNamespace, *replies: str) -> Transition:
    transition = Transition(opened(dynamics, fakes)[0])
    for text in replies:
        transition = dynamics.reply([transition.dialogue], [text])[0]
    return transition


def test_the_opening_is_the_first_message(fakes: SimpleNamespace) -> None:
    transition = make(fakes).open([fakes.tasks[0]], [7])[0]
    assert transition.observation == "What is it? #7"
    assert transition.dialogue.messages == ({"role": "user", "content": "What is it? #7"},)
    assert (transition.terminated, transition.truncated, transition.score) == (False, False, None)


@pytest.mark.parametrize(
    ("replies", "stop", "observation", "reward", "flags"),
    [
        (["hm"], None, "You said: hm", 0.0, (False, False)),
        (["forty-two", "bye"], StopReason.USER_SATISFIED, "You said: bye", 1.0, (True, False)),
        (["hm", "leave"], StopReason.USER_GAVE_UP, "You said: leave", 0.0, (True, False)),
        (["1", "2", "forty-two"], StopReason.TURN_LIMIT, "", 1.0, (False, True)),
        (["1", "2", "bye"], StopReason.TURN_LIMIT, "", 0.0, (False, True)),
        (["forty-two" + "x" * 52], StopReason.MESSAGE_LIMIT, "", 1.0, (False, True)),
        (["1", "2", "x" * 61], StopReason.MESSAGE_LIMIT, "", 0.0, (False, True)),
    ],
)
def test_step_table(
    fakes: SimpleNamespace, replies: list[str], stop: StopReason | None, observation: str, reward: float, flags: Any
) -> None:
    transition = after(make(fakes), fakes, *replies)
    assert transition.dialogue.stop is stop
    assert transition.observation == observation
    assert transition.reward == reward
    assert (transition.terminated, transition.truncated) == flags
    assert type(transition.terminated) is type(transition.truncated) is bool
    assert transition.scored is (stop is not None)
    assert transition.dialogue.said_by("assistant") == tuple(replies)


def test_a_reply_of_exactly_max_chars_is_answered(fakes: SimpleNamespace) -> None:
    assert after(make(fakes), fakes, "x" * 60).dialogue.stop is None


def test_no_user_turn_is_bought_at_the_turn_limit(fakes: SimpleNamespace) -> None:
    user = fakes.Echo()
    after(make(fakes, simulator=user, max_turns=1), fakes, "hm")
    assert user.calls == [1]


def test_one_simulator_and_one_reward_call_for_the_whole_batch(fakes: SimpleNamespace) -> None:
    user, reward = fakes.Echo(), fakes.SpeaksSecret()
    dynamics = make(fakes, simulator=user, reward=reward)
    dialogues = opened(dynamics, fakes, 5)
    out = dynamics.reply(dialogues, ["hm", "bye", "x" * 99, "leave", "hm"])
    assert user.calls == [5, 4]
    assert reward.calls == [3]
    assert [t.dialogue.stop is None for t in out] == [True, False, False, False, True]
    assert [t.dialogue.seed for t in out] == [0, 1, 2, 3, 4]


def test_calls_do_not_change_what_they_are_given(fakes: SimpleNamespace) -> None:
    dynamics = make(fakes)
    dialogue = opened(dynamics, fakes)[0]
    first, second = dynamics.reply([dialogue], ["a"])[0], dynamics.reply([dialogue], ["a"])[0]
    assert first == second
    assert len(dialogue.messages) == 1


@pytest.mark.parametrize("trick", ["broken", "hanging", "junk", "none", "bad_notes", "bad_stop"])
def test_a_simulator_that_fails_twice_costs_only_its_own_dialogue(fakes: SimpleNamespace, trick: str) -> None:
    tricks = {
        "broken": fakes.broken,
        "hanging": fakes.hanging,
        "junk": lambda d: "not a turn",
        "none": lambda d: None,
        "bad_notes": lambda d: UserTurn("hi", notes={"leak": "many"}),  # type: ignore[dict-item]
        "bad_stop": lambda d: UserTurn("hi", stop=StopReason.TOKEN_LIMIT),
    }
    reward = fakes.SpeaksSecret()
    dynamics = make(fakes, simulator=fakes.Odd(tricks[trick]), reward=reward)
    fine, odd = dynamics.reply(opened(dynamics, fakes, 2), ["hm", "odd"])
    assert fine.observation == "You said: hm"
    assert odd.dialogue.stop is StopReason.SIMULATOR_ERROR
    assert (odd.observation, odd.reward, odd.scored, odd.truncated) == ("", 0.0, False, True)
    assert odd.error
    assert reward.calls == []


@pytest.mark.parametrize(
    "turn", [UserTurn("   "), UserTurn("Hi", stop=StopReason.USER_GAVE_UP), UserTurn("", stop=StopReason.USER_GAVE_UP)]
)
def test_an_opening_without_anything_to_reply_to_is_a_simulator_error(fakes: SimpleNamespace, turn: UserTurn) -> None:
    dynamics = make(fakes, simulator=fakes.Odd(lambda d: turn, task_id="mul"))
    fine, odd = dynamics.open(fakes.tasks, [0, 1])
    assert fine.dialogue.stop is None
    assert odd.dialogue.stop is StopReason.SIMULATOR_ERROR
    assert (odd.dialogue.messages, odd.observation, odd.scored) == ((), "", False)
    assert odd.error


def test_a_user_may_leave_without_a_word(fakes: SimpleNamespace) -> None:
    gone = UserTurn("", stop=StopReason.USER_GAVE_UP)
    transition = after(make(fakes, simulator=fakes.Odd(lambda d: gone)), fakes, "odd")
    assert transition.terminated
    assert transition.dialogue.messages[-1]["role"] == "assistant"


def test_a_long_user_text_is_cut_and_noted(fakes: SimpleNamespace) -> None:
    transition = after(make(fakes, simulator=fakes.Odd(lambda d: UserTurn("y" * 61, notes={"a": 2}))), fakes, "odd")
    assert transition.observation == "y" * 60 == transition.dialogue.messages[-1]["content"]
    assert transition.user_turn is not None
    assert transition.user_turn.notes == {"a": 2.0, "user_text_cut": 1.0}


def test_lone_surrogates_never_reach_a_message(fakes: SimpleNamespace) -> None:
    transition = after(make(fakes, simulator=fakes.Odd(lambda d: UserTurn("a\ud83db"))), fakes, "\udc00", "odd")
    assert [m["content"] for m in transition.dialogue.messages[1:]] == ["\ufffd", "You said: \ufffd", "odd", "a\ufffdb"]


@pytest.mark.parametrize("reason", [StopReason.TOKEN_LIMIT, StopReason.CONTEXT_OVERFLOW])
def test_a_cut_dialogue_is_scored(fakes: SimpleNamespace, reason: StopReason) -> None:
    """A prompt that outgrows the context ends the dialogue with its reason; what was achieved by then counts."""
    dynamics = make(fakes)
    cut = dynamics.cut([after(dynamics, fakes, "forty-two").dialogue], reason)[0]
    assert (cut.dialogue.stop, cut.reward, cut.scored, cut.truncated) == (reason, 1.0, True, True)


def test_a_policy_error_is_not_scored(fakes: SimpleNamespace) -> None:
    reward = fakes.SpeaksSecret()
    dynamics = make(fakes, reward=reward)
    cut = dynamics.cut([after(dynamics, fakes, "forty-two").dialogue], StopReason.POLICY_ERROR)[0]
    assert (cut.reward, cut.scored, cut.truncated, reward.calls) == (0.0, False, True, [])


def test_cutting_needs_a_limit_and_an_open_dialogue(fakes: SimpleNamespace) -> None:
    dynamics = make(fakes)
    with pytest.raises(DuologueError, match="user's to decide"):
        dynamics.cut(opened(dynamics, fakes), StopReason.USER_SATISFIED)
    over = after(dynamics, fakes, "bye").dialogue
    with pytest.raises(DuologueError, match="reset"):
        dynamics.cut([over], StopReason.TOKEN_LIMIT)
    with pytest.raises(DuologueError, match="reset"):
        dynamics.reply([over], ["hello?"])


def test_a_reply_must_be_text(fakes: SimpleNamespace) -> None:
    dynamics = make(fakes)
    with pytest.raises(DuologueError, match=r"int, not str\. Pass"):
        dynamics.reply(opened(dynamics, fakes), [3])  # type: ignore[list-item]


@pytest.mark.parametrize("limit", [{"max_turns": 0}, {"max_chars": 0}, {"call_timeout": 0.0}])
def test_limits_that_cannot_work_are_refused(fakes: SimpleNamespace, limit: dict[str, Any]) -> None:
    with pytest.raises(DuologueError, match=f"{next(iter(limit))}.*Pass"):
        make(fakes, **limit)


def test_parts_that_cannot_work_are_refused(fakes: SimpleNamespace) -> None:
    with pytest.raises(DuologueError, match="respond"):
        make(fakes, simulator="echo")
    with pytest.raises(DuologueError, match="no reward"):
        make(fakes, reward=1.0)


def test_the_parts_of_a_score_are_kept(fakes: SimpleNamespace) -> None:
    class InParts:
        def __call__(self, dialogues: Any) -> list[float | None]:
            raise AssertionError("score() says more")

        def score(self, dialogues: Any) -> list[Score]:
            return [Score(0.5, {"answer": 1.0, "length": None}) for _ in dialogues]

    transition = after(make(fakes, reward=InParts()), fakes, "bye")
    assert transition.reward == 0.5
    assert transition.score == Score(0.5, {"answer": 1.0, "length": None})
