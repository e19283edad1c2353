from collections.abc import Callable
from statistics import mean

import gymnasium as gym
import pytest

from duologue.errors import DuologueError
from duologue.rewards.bleu import word_bleu
from duologue.rewards.documents import extract_document
from duologue.trainers import FunctionAgent, Limits, Rollout, Start
from duologue.trainers.agent_spec import make_agent
from duologue.trainers.hasty_writer import HastyWriterAgent
from duologue.types import Message, Task

Notices = Callable[..., list[Task]]
Said = Callable[..., list[Message]]


def bleu_with(facts: int, tasks: list[Task], said: Said) -> float:
    """Return the mean BLEU of what a writer hands over who has heard the first so many facts."""
    agent = HastyWriterAgent(haste=1.0)
    drafts = [agent(said(t.instruction, "What should it say?", " ".join(t.facts[:facts]))) for t in tasks]
    found = [extract_document([draft]) or "" for draft in drafts]
    return mean(word_bleu(draft, task.reference) for draft, task in zip(found, tasks, strict=True))


def test_bleu_grows_with_every_fact(notices: Notices, said: Said) -> None:
    scores = [bleu_with(k, notices(60), said) for k in range(6)]
    assert scores == sorted(scores)
    assert 0.2 < scores[0] < 0.35
    assert scores[5] == 1.0


def test_it_asks_until_it_knows_everything_when_it_is_not_hasty(notices: Notices, said: Said) -> None:
    agent, task = HastyWriterAgent(haste=0.0), notices(1)[0]
    assert agent(said(task.instruction)) == "What should it say?"
    assert agent(said(task.instruction, "?", " ".join(task.facts[:4]))) == "What else should it say?"
    reply = agent(said(task.instruction, "?", " ".join(task.facts[:4]), "?", f"Um, {task.facts[4].lower()}"))
    assert reply.startswith("<document>")


def test_it_gets_over_typos_small_letters_and_greetings(notices: Notices, said: Said) -> None:
    agent = HastyWriterAgent(haste=1.0)
    for task in notices(24):
        opening = f"hey! {task.instruction.lower()}".replace("notice", "ntoice")
        reply = agent(said(opening, "?", "Oh, " + " ".join(task.facts)))
        assert extract_document([reply]) == task.reference


def test_it_reads_the_users_words_alone(notices: Notices, said: Said) -> None:
    task = notices(1)[0]
    facts = " ".join(task.facts)
    agent = HastyWriterAgent(haste=1.0)
    assert agent(said(task.instruction, facts, "Ok... so?")) == agent(said(task.instruction, "?", "Ok... so?"))


def test_the_latest_word_counts(notices: Notices, said: Said) -> None:
    task = notices(1)[0]
    facts = " ".join(task.facts)
    reply = HastyWriterAgent()(said(task.instruction, "?", f"The date is Monday 3 May. {facts}"))
    assert "Saturday 8 May" in reply
    assert "Monday" not in reply


def test_same_dialogue_same_reply_and_another_seed_another_agent(notices: Notices, said: Said) -> None:
    openings = [said(task.instruction) for task in notices(40)]
    replies = [[HastyWriterAgent(seed=seed)(opening) for opening in openings] for seed in (0, 0, 1)]
    assert replies[0] == replies[1] != replies[2]
    assert 10 < sum(reply.startswith("<") for reply in replies[0]) < 30


def test_play(notices: Notices) -> None:
    env = gym.make_vec(
        "duologue.envs:MediumDocEditChat-v0",
        num_envs=16,
        vectorization_mode="vector_entry_point",
        tasks="notices:split=train",
    )
    episodes = Rollout(env, make_agent("scripted:hasty-writer", Limits(), 1.0, None)).play(list(map(Start, range(48))))
    scores = [episode.reward for episode in episodes]
    assert 0.6 < mean(score or 0.0 for score in scores) < 0.97
    assert len({round(score or 0.0, 1) for score in scores}) > 3


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("scripted:hasty-math", "hasty-math(haste=0.5,slips=0.05,seed=0)"),
        ("scripted:hasty-math,haste=0.25,slips=0,seed=3", "hasty-math(haste=0.25,slips=0,seed=3)"),
        ("scripted:hasty-writer,haste=1,seed=2", "hasty-writer(haste=1,seed=2"),
    ],
)
def test_specs(spec: str, name: str) -> None:
    agent = make_agent(spec, Limits(), 1.0, None)
    assert isinstance(agent, FunctionAgent)
    assert agent.signature.startswith(name)
    assert agent.signature == make_agent(spec, Limits(), 0.0, None).signature


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("scripted:hasty-maths", r"no scripted agent 'hasty-maths'. Did you mean 'hasty-math'\?"),
        ("scripted:", r"Choose one of: 'hasty-math', 'hasty-writer'"),
        ("scripted:hasty-writer,slips=0.1", "no option 'slips'. Choose one of: 'haste', 'seed'"),
        ("scripted:hasty-writer,hast=0.1", r"no option 'hast'. Did you mean 'haste'\?"),
        ("scripted:hasty-math,haste=1.5", "haste '1.5'. Give a number from 0 to 1"),
        ("scripted:hasty-math,haste=nan", "haste 'nan'. Give a number"),
        ("scripted:hasty-math,haste", "haste ''. Give a number"),
        ("scripted:hasty-math,seed=0.5", "seed '0.5'. Give a whole number"),
        ("scripted:hasty-math,seed=1,seed=2", "names 'seed' twice"),
    ],
)
def test_specs_that_name_nothing(spec: str, message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        make_agent(spec, Limits(), 1.0, None)


def test_a_scripted_agent_takes_no_system_prompt() -> None:
    with pytest.raises(DuologueError, match="Leave system_prompt out"):
        make_agent("scripted:hasty-math", Limits(), 1.0, "Be brief.")
