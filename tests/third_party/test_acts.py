"""MathChat in acts: checked by Gymnasium, by hand, and by PPO, which must learn it."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from duologue.analysis import EvaluateConfig, evaluate
from duologue.envs.acts import FEATURES, AssistantAct, DialogueActs, features, speak
from duologue.errors import DuologueError
from duologue.rewards.answers import committed_answer
from duologue.trainers.act_agents import act_agent, load_sb3_agent
from duologue.trainers.agents import FunctionAgent
from duologue.types import Message, alternates

OPENING = "How many pens do Tom and 2 friends have?"


def history(*texts: str) -> list[Message]:
    return [Message(role="assistant" if i % 2 else "user", content=text) for i, text in enumerate(texts)]


def make(**changes: Any) -> DialogueActs:
    return DialogueActs(gym.make("duologue.envs:MathChat-v0", **{"max_turns": 4, **changes}))


def ask_then_add(observation: Any) -> int:
    return AssistantAct.ASK if observation[1] < 2 / 8 else AssistantAct.ADD_UP


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
def test_gymnasium_accepts_it() -> None:
    check_env(make(), skip_render_check=True)


def test_what_each_act_says() -> None:
    known = history(OPENING, "What do you know?", "Tom has 3 pens.", "And?", "um, Ann has 5 pens")
    assert [committed_answer([speak(act, known)]) for act in AssistantAct] == [None, "8", "5", "10", None]
    assert speak(AssistantAct.ADD_UP, known) == "3 + 5 = 8. Answer: 8"
    assert speak(AssistantAct.ASK, known).endswith("?")
    assert [speak(act, history(OPENING)) for act in (0, 1, 2)] == ["What do you know?", "0 = 0. Answer: 0", "Answer: 0"]


@pytest.mark.parametrize("act", [-1, 5])
def test_no_such_act(act: int) -> None:
    with pytest.raises(DuologueError, match=rf"There is no act {act}\. Choose one of 0 \(ASK\)"):
        speak(act, history(OPENING))


def test_features_by_hand() -> None:
    assert dict(zip(FEATURES, features(history(OPENING)), strict=True)) == dict.fromkeys(FEATURES, 0)
    told = history(OPENING, "What do you know?", "3 and 4.", "Answer: 9", "No.")
    assert features(told).tolist() == [2 / 8, 2 / 8, 1 / 8, 1, 1]
    assert features([*told, *history("?", "What else?", "5.")[1:]]).tolist() == [3 / 8, 3 / 8, 2 / 8, 0, 0]
    assert features(history(OPENING, *["a", "7 7 7"] * 20)).tolist() == [1, 1, 1, 0, 0]


def test_the_observation_is_the_public_history() -> None:
    env = make(tasks="math:level=1,split=train")
    for seed in range(20):
        observation, info = env.reset(seed=seed)
        over = False
        while not over:
            assert observation in env.observation_space
            assert observation.tolist() == features(info["messages"]).tolist()
            observation, reward, terminated, truncated, info = env.step(np.int64(ask_then_add(observation)))
            over = terminated or truncated
        assert alternates(info["messages"])
        assert reward in (0.0, 1.0)


def test_in_text_it_is_the_same_policy(tmp_path: Path) -> None:
    rewards = []
    env = make(simulator="scripted:held-out", tasks="math:level=1,split=test")
    config = EvaluateConfig(episodes=20, max_turns=4, output=str(tmp_path / "acts"))
    report = evaluate(config, act_agent(ask_then_add, "ask-then-add"))
    from duologue.analysis.play import starts_of

    for start in starts_of(config.seed, config.episodes):
        observation, _ = env.reset(seed=start.seed)
        over = False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(np.int64(ask_then_add(observation)))
            over = terminated or truncated
        rewards.append(reward)
    assert report.score.value == pytest.approx(np.mean(rewards))
    assert np.mean(rewards) > 0.7


def test_only_mathchat_has_these_acts() -> None:
    with pytest.raises(DuologueError, match="is not MathChat, whose acts these are"):
        DialogueActs(gym.make("duologue.envs:MediumDocEditChat-v0"))


def test_a_policy_that_is_not_there() -> None:
    with pytest.raises(DuologueError, match=r"There is no policy nowhere\.zip\. Give the \.zip that PPO\.save wrote"):
        load_sb3_agent("nowhere.zip")


def accuracy(agent: FunctionAgent, folder: Path) -> float:
    config = EvaluateConfig(episodes=100, max_turns=4, output=str(folder))
    return float(evaluate(config, agent).score.value)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_ppo_learns_to_ask_before_it_answers(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3", reason="install the extra sb3: pip install 'duologue[sb3]'")
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    rng = np.random.default_rng(0)
    chance = accuracy(act_agent(lambda _: int(rng.integers(5)), "random"), tmp_path / "random")
    scores = []
    for seed in range(2):
        env = make_vec_env(lambda: make(tasks="math:level=1,split=train"), n_envs=8, seed=seed)
        settings: dict[str, Any] = {"n_steps": 64, "batch_size": 128, "learning_rate": 2e-3, "gamma": 1.0}
        model = PPO("MlpPolicy", env, ent_coef=0.01, seed=seed, device="cpu", **settings)
        model.learn(4_096)
        model.save(tmp_path / f"{seed}.zip")
        agent = load_sb3_agent(tmp_path / f"{seed}.zip")
        assert agent.signature.startswith("sb3-ppo@")
        scores.append(accuracy(agent, tmp_path / str(seed)))
    assert chance < 0.3
    assert np.mean(scores) > chance + 0.4
