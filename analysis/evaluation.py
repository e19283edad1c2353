"""Evaluation: play dialogues with held-out users on test tasks, keep every episode, report with intervals."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from duologue.analysis.config import EvaluateConfig
from duologue.analysis.play import VectorEnv, agent_of, env_of, play, starts_of
from duologue.analysis.report import markdown
from duologue.analysis.store import EvaluationFolder
from duologue.analysis.summary import EvaluationReport, summarise
from duologue.trainers.agents import Agent, ChatAgent, TokenAgent
from duologue.types import Episode

TEST_TASKS = {"MathChat-v0": "math:level=1,split=test", "MediumDocEditChat-v0": "documents:length=short,split=test"}
"""Test split of each shipped environment."""
OnProgress = Callable[[int, int, float | None], None]
"""Called with episodes done, episodes in all, and the mean score so far (None before the first)."""


def evaluate(
    config: EvaluateConfig, agent: Agent | None = None, on_progress: OnProgress | None = None
) -> EvaluationReport:
    """Measure an agent. Episodes that fail are unscored and counted; the evaluation goes on.

    Writes ``run.json``, ``episodes.jsonl`` (one line as each dialogue ends), ``report.json`` and ``report.md`` into
    ``config.output``. Called again with the same signature it plays only what is missing, also when ``episodes`` grew;
    the report is the same as without the interruption, as far as agent and user repeat themselves for a seed.

    Args:
        config: what to measure.
        agent: plays the assistant; None = the one that ``config.agent`` names.
        on_progress: follows the episodes.

    Raises:
        DuologueError: if a part cannot be made, or the folder holds another evaluation.
    """
    config = replace(config, tasks=config.tasks or TEST_TASKS.get(config.env))
    agent = agent or agent_of(config)
    folder = EvaluationFolder(config.output)
    starts = starts_of(config.seed, config.episodes)
    done = {} if config.overwrite else {e.seed: e for e in folder.read(config.resume)}
    missing = [start for start in starts if start.seed not in done]
    env = env_of(config, len(missing))
    identity = f"{getattr(env, 'signature', f'env:{config.env}')}|{_agent_part(agent)}|seed:{config.seed}"
    folder.claim(identity, asdict(config), afresh=config.overwrite)

    def keep(episode: Episode) -> None:
        folder.episodes.append(episode)
        done[episode.seed] = episode
        if on_progress:
            on_progress(*_progress([done[s.seed] for s in starts if s.seed in done], len(starts)))

    if missing:
        play(env, agent, missing, keep)
    episodes = [done[start.seed] for start in starts]
    report = summarise(episodes, f"{identity}|n:{len(starts)}", _find_task(env))
    folder.write(
        "report.json", json.dumps({**report.to_json(), "config": asdict(config)}, indent=2, ensure_ascii=False)
    )
    folder.write("report.md", markdown(report))
    return report


def _progress(episodes: list[Episode], total: int) -> tuple[int, int, float | None]:
    scores = [e.reward for e in episodes if e.reward is not None]
    return len(episodes), total, sum(scores) / len(scores) if scores else None


def _agent_part(agent: Agent) -> str:
    """Return the agent's part of the signature: who, with which sampling, system prompt and library versions."""
    fields = [f"agent:{agent.signature}"]
    if system := _system_prompt(agent):
        fields.append(f"system:{sha256(system.encode()).hexdigest()[:8]}")
    if isinstance(agent, TokenAgent):
        fields += [f"{name}:{version(name)}" for name in ("torch", "transformers")]
    return "|".join(fields)


def _system_prompt(agent: Agent) -> str | None:
    if isinstance(agent, TokenAgent):
        return agent.chat.system_prompt
    return agent.system[0]["content"] if isinstance(agent, ChatAgent) and agent.system else None


def _find_task(env: VectorEnv) -> Callable[[str], Any] | None:
    parts = getattr(env, "parts", None)
    return parts.tasks.find if parts is not None else None
