"""Evaluation: play dialogues with held-out users on test tasks, keep every episode, report with intervals."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from duologue.analysis.config import EvaluateConfig
from duologue.analysis.play import MakeEnv, OnProgress, VectorEnv, agent_of, env_of, play, starts_of
from duologue.analysis.report import markdown
from duologue.analysis.store import EvaluationFolder
from duologue.analysis.summary import EvaluationReport, summarise
from duologue.disk import explains_full_disk
from duologue.simulators.spec import plain_name
from duologue.trainers.agents import Agent, ChatAgent, TokenAgent

TEST_TASKS = {"MathChat": "math:level=1,split=test", "MediumDocEditChat": "documents:length=short,split=test"}
"""Test split of each shipped environment, by its name without version."""
_OBJECT: dict[str, Any] = dict.fromkeys(("simulator", "tasks", "max_turns"))
"""What a configuration does not say about an environment that was given as an object."""


@explains_full_disk("run the same command without --overwrite: it keeps finished episodes and plays the missing ones.")
def evaluate(
    config: EvaluateConfig,
    agent: Agent | None = None,
    make_env: MakeEnv | None = None,
    on_progress: OnProgress | None = None,
) -> EvaluationReport:
    """Measure an agent. Episodes that fail are unscored and counted; the evaluation goes on.

    Writes ``run.json``, ``episodes.jsonl`` (one line as each dialogue ends), ``report.json`` and ``report.md`` into
    ``config.output``. Called again with the same signature it plays only what is missing, also when ``episodes`` grew;
    the report is the same as without the interruption, as far as agent and user repeat themselves for a seed.

    Args:
        config: what to measure.
        agent: plays the assistant; None = the one that ``config.agent`` names.
        make_env: makes a vector environment with ``cut`` and without autoreset from a number of slots, for users that
            are objects and environments of others; then ``config.env``, ``simulator``, ``tasks`` and ``max_turns`` are
            not read, and its ``signature`` says what is measured. None = the one that the configuration names.
        on_progress: follows the episodes.

    Raises:
        DuologueError: if a part cannot be made, or the folder holds another evaluation.
    """
    config = replace(config, tasks=config.tasks or TEST_TASKS.get(plain_name(config.env)))
    agent = agent or agent_of(config)
    folder = EvaluationFolder(config.output)
    starts = starts_of(config.seed, config.episodes)
    done = {} if config.overwrite else {e.seed: e for e in folder.read(config.resume)}
    env = env_of(config, sum(start.seed not in done for start in starts), make_env)
    used = asdict(config) | (_OBJECT | {"env": getattr(env, "env_id", type(env).__name__)} if make_env else {})
    identity = f"{getattr(env, 'signature', 'env:' + used['env'])}|{_agent_part(agent)}|seed:{config.seed}"
    folder.claim(identity, used, afresh=config.overwrite)
    episodes = play(env, agent, starts, done, folder.episodes, on_progress)
    report = summarise(episodes, f"{identity}|n:{len(starts)}", _find_task(env))
    folder.write("report.json", json.dumps({**report.to_json(), "config": used}, indent=2, ensure_ascii=False))
    folder.write("report.md", markdown(report))
    return report


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
