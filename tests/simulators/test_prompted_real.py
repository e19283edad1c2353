"""A real language model plays the user: the embedded default model in MathChat, from its spec to finished episodes."""

from typing import Any

import pytest

from duologue.engines import Sampling
from duologue.envs import MathChatVectorEnv
from duologue.simulators import GuardedUser, PromptedUser, Simulator, leaks, make_simulator
from duologue.simulators.guards import strip_control
from duologue.trainers import FunctionAgent, Rollout, Start
from duologue.types import Episode, StopReason

REPLY = "Which numbers do you have?"
NOTES = {"unparsed", "blank"} | {
    f"guard_{fault}" for fault in ("role_flip", "restart", "repeat", "leak", "control", "resampled")
}
REASONS = {StopReason.TURN_LIMIT, StopReason.USER_SATISFIED, StopReason.USER_GAVE_UP}


@pytest.mark.slow
def test_the_default_model_plays_the_user() -> None:
    """What a model of 135M says is no dialogue worth reading; that it is one at all is what counts here."""
    spoken: Any = make_simulator("prompted:default", "MathChat")
    spoken.user.sampling = Sampling(max_new_tokens=24)
    assert sum(len(_said(episode)) for episode in _played(spoken)) >= 3

    # Asked the same question greedily at every turn, the model repeats itself, which the guard must see.
    stuck = PromptedUser(
        spoken.user.model, "MathChat", max_new_tokens=12, temperature=0, template="{{ task.instruction }}"
    )
    for episode in _played(GuardedUser(stuck)):
        assert episode.user_notes["guard_restart"] == episode.user_notes["guard_resampled"] == 1.0


def _played(user: Simulator) -> list[Episode]:
    """Return two episodes of two turns, of which everything holds that holds for any user and any words."""
    env = MathChatVectorEnv(2, simulator=user, tasks="math:level=1,split=test", max_turns=2)
    episodes = Rollout(env, FunctionAgent(lambda messages: REPLY, "asks")).play([Start(0), Start(1)])
    for episode in episodes:
        task = env.parts.tasks.find(episode.task_id)
        assert (episode.stop_reason in REASONS, episode.error) == (True, None)
        assert episode.reward == 0.0
        assert episode.user_notes.keys() <= NOTES
        assert _said(episode)
        for i, message in enumerate(episode.messages):
            if message["role"] == "user":
                assert strip_control(message["content"]) == message["content"].strip() != ""
                assert not leaks(task, episode.messages[:i], message["content"])
    return episodes


def _said(episode: Episode) -> list[str]:
    return [message["content"] for message in episode.messages if message["role"] == "user"]
