from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv

from duologue.envs.dialogue_env import DialogueEnv
from duologue.envs.wrappers import ChatTemplateObservation, MessagesObservation
from duologue.errors import DuologueError

TEMPLATE = """{% if messages[0].role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}
{% for m in messages %}
<|{{ m.role }}|>{{ m.content }}
{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"""


class Tokenizer:
    def apply_chat_template(self, conversation: Any, *, tokenize: bool, add_generation_prompt: bool) -> str:
        assert tokenize is False
        text = "".join(f"[{m['role']}]{m['content']}" for m in conversation)
        return text + "[assistant]" * add_generation_prompt


def make(fakes: SimpleNamespace, **args: Any) -> DialogueEnv:
    parts = {"tasks": fakes.TwoTasks(), "simulator": fakes.Echo(), "reward": fakes.SpeaksSecret()}
    return DialogueEnv(**(parts | {"max_turns": 3, "max_chars": 80} | args))


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.parametrize(
    "wrap",
    [
        MessagesObservation,
        lambda env: ChatTemplateObservation(env, TEMPLATE),
        lambda env: ChatTemplateObservation(env, Tokenizer()),
    ],
)
def test_gymnasium_is_satisfied(fakes: SimpleNamespace, wrap: Any) -> None:
    creator: Any = lambda render_mode=None: make(fakes, render_mode=render_mode)  # noqa: E731
    spec = EnvSpec("Fake-v0", entry_point=creator)
    check_env(wrap(gym.make(spec)))


def test_messages_are_the_whole_history(fakes: SimpleNamespace) -> None:
    env = MessagesObservation(make(fakes))
    observation, info = env.reset(seed=0)
    assert observation == info["messages"]
    observation, _, _, _, info = env.step("hm")
    assert [m["content"] for m in observation[1:]] == ["hm", "You said: hm"]
    assert observation in env.observation_space
    observation[0]["content"] = "forged"
    assert info["messages"][0]["content"] != "forged"
    assert env.step("bye")[0][0]["content"] != "forged"


@pytest.mark.parametrize("template", [TEMPLATE, Tokenizer()])
def test_a_chat_template_makes_one_text(fakes: SimpleNamespace, template: Any) -> None:
    env = ChatTemplateObservation(make(fakes), template)
    opening, _ = env.reset(seed=0)
    after = env.step("hm")[0]
    marks = ("<|user|>", "<|assistant|>") if isinstance(template, str) else ("[user]", "[assistant]")
    assert (opening.count(marks[0]), opening.count(marks[1])) == (1, 1)
    assert (after.count(marks[0]), after.count(marks[1])) == (2, 2)
    assert after.endswith(marks[1])
    assert after.startswith(opening)
    assert after.index("hm") < after.index("You said: hm")


@pytest.mark.parametrize("wrap", [MessagesObservation, lambda env: ChatTemplateObservation(env, TEMPLATE)])
def test_the_longest_dialogue_fits_the_space(fakes: SimpleNamespace, wrap: Any) -> None:
    env = wrap(make(fakes, max_turns=2, max_chars=20))
    env.reset(seed=0)
    for text in ("y" * 20, "z" * 500):
        observation, *_, info = env.step(text)
        assert observation in env.observation_space
    assert info["messages"][-1]["content"] == "z" * 500
    assert info["stop_reason"] == "message_limit"


def test_a_failed_opening_is_an_empty_history(fakes: SimpleNamespace) -> None:
    broken = fakes.Odd(fakes.broken, task_id="add")
    for wrap, empty in ((MessagesObservation, ()), (lambda env: ChatTemplateObservation(env, TEMPLATE), "")):
        observation, _ = wrap(make(fakes, simulator=broken)).reset(options={"task_id": "add"})
        assert observation == empty


def test_they_work_in_vectors(fakes: SimpleNamespace) -> None:
    messages = SyncVectorEnv([lambda: MessagesObservation(make(fakes))] * 2)
    messages.reset(seed=0)
    assert [len(history) for history in messages.step(("a", "b"))[0]] == [3, 3]
    texts = SyncVectorEnv([lambda: ChatTemplateObservation(make(fakes), TEMPLATE)] * 2)
    observations, _ = texts.reset(seed=0)
    assert observations in texts.observation_space


@pytest.mark.parametrize(
    ("template", "match"),
    [(3, "apply_chat_template"), ("{% if %}", "valid Jinja"), ("{{ raise_exception('never') }}", "never")],
)
def test_templates_that_cannot_work_are_refused(fakes: SimpleNamespace, template: Any, match: str) -> None:
    with pytest.raises(DuologueError, match=match):
        ChatTemplateObservation(make(fakes), template)


def test_a_template_cannot_reach_python(fakes: SimpleNamespace) -> None:
    with pytest.raises(DuologueError, match="unsafe"):
        ChatTemplateObservation(make(fakes), "{{ messages.__class__.__mro__ }}")


def test_other_environments_are_refused() -> None:
    class Other(gym.Env[Any, Any]):
        observation_space = gym.spaces.Box(0, 1, (1,), np.float32)

    with pytest.raises(DuologueError, match="MathChat-v0"):
        MessagesObservation(Other())
