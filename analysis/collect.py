"""Logged dialogues from rollouts: play, keep what could be scored, and write it with its tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from duologue.analysis.config import CollectConfig
from duologue.analysis.play import OnProgress, VectorEnv, agent_of, env_of, play, starts_of
from duologue.analysis.store import EvaluationFolder
from duologue.disk import explains_full_disk
from duologue.errors import DuologueError
from duologue.rewards import signature_of
from duologue.simulators.logs import LoggedDialogue, write_logs
from duologue.trainers.agents import Agent
from duologue.types import Episode, Message, Task, alternates

__all__ = ["CollectConfig", "Collected", "collect", "collect_counted", "logged_dialogues"]


@dataclass(frozen=True, slots=True)
class Collected:
    """The dialogues that were written, and how many were left out."""

    dialogues: list[LoggedDialogue]
    left_out: Mapping[str, int]
    """How many, by reason: not scored, with the stop reason, or what a log cannot hold."""


def collect(
    config: CollectConfig, agent: Agent | None = None, on_progress: OnProgress | None = None
) -> list[LoggedDialogue]:
    """Play dialogues and return those that ``config.output`` got; ``collect_counted`` also says what was left out.

    Raises:
        DuologueError: as ``collect_counted``.
    """
    return collect_counted(config, agent, on_progress).dialogues


@explains_full_disk("run the same command without --overwrite: it keeps finished episodes and plays the missing ones.")
def collect_counted(
    config: CollectConfig, agent: Agent | None = None, on_progress: OnProgress | None = None
) -> Collected:
    """Play dialogues, and write each that was scored as a ``LoggedDialogue`` with its whole task.

    The episodes go to the folder ``<output>.episodes``, one line as each ends. Called again with the same configuration
    it plays only what is missing, also when ``episodes`` grew, and writes ``output`` anew, whole or not at all. Seeds
    are those of ``rollout``.

    Args:
        config: what to play.
        agent: plays the assistant; None = the one that ``config.agent`` names.
        on_progress: follows the episodes.

    Raises:
        DuologueError: if a part cannot be made, the environment has no task source, ``output`` exists and is not of
            this configuration, or no dialogue could be kept.
    """
    agent = agent or agent_of(config)
    folder = EvaluationFolder(f"{config.output}.episodes")
    _refuse_strangers(config, folder)
    starts = starts_of(config.seed, config.episodes)
    done = {} if config.overwrite else {e.seed: e for e in folder.read(resume=True)}
    env = env_of(config, sum(start.seed not in done for start in starts))
    source, find = _source(env, agent), _find_task(env, config.env)
    identity = f"{getattr(env, 'signature', f'env:{config.env}')}|agent:{agent.signature}|seed:{config.seed}"
    folder.claim(identity, asdict(config), afresh=config.overwrite)
    episodes = play(env, agent, starts, done, folder.episodes, on_progress)
    found = logged_dialogues(episodes, find, source, scripted=config.simulator.startswith("scripted"))
    if not found.dialogues:
        raise DuologueError(_nothing_kept(found, episodes))
    write_logs(config.output, found.dialogues)
    return found


def logged_dialogues(
    episodes: Iterable[Episode], find: Callable[[str], Task], source: str, *, scripted: bool
) -> Collected:
    """Turn episodes into logged dialogues.

    Args:
        episodes: in order; unscored ones, ones with a blank turn and repeated ones are left out and counted.
        find: from a task id to the task.
        source: kept with each dialogue.
        scripted: the users' personas follow from the seed, so that each seed is a person of its own.
    """
    dialogues: dict[str, LoggedDialogue] = {}
    left_out: Counter[str] = Counter()
    for episode in episodes:
        messages = _spoken(episode.messages)
        if episode.reward is None:
            left_out[f"not scored: {episode.stop_reason.value}"] += 1
        elif not messages or not alternates(messages) or not all(m["content"].strip() for m in messages):
            left_out["a blank turn"] += 1
        else:
            dialogue = LoggedDialogue(
                dialogue_id=f"{episode.task_id}-seed-{episode.seed}",
                task=find(episode.task_id),
                messages=messages,
                stop=episode.stop_reason,
                person=f"seed-{episode.seed}" if scripted else None,
                source=source,
                metadata={"reward": episode.reward},
            )
            left_out["the same task and words as another"] += dialogue.content_hash in dialogues
            dialogues.setdefault(dialogue.content_hash, dialogue)
    return Collected(list(dialogues.values()), {reason: n for reason, n in left_out.items() if n})


def _spoken(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages without a last user turn in which the user just left."""
    silent = bool(messages) and messages[-1]["role"] == "user" and not messages[-1]["content"].strip()
    return messages[:-1] if silent else messages


def _source(env: VectorEnv, agent: Agent) -> str:
    parts = getattr(env, "parts", None)
    user = signature_of(parts.dynamics.simulator) if parts is not None else "unknown"
    return f"user:{user}|agent:{agent.signature}"


def _find_task(env: VectorEnv, env_id: str) -> Callable[[str], Task]:
    parts = getattr(env, "parts", None)
    if parts is None:
        env.close()
        raise DuologueError(
            f"{env_id} has no task source to take the tasks from. Give an environment of duologue's, or keep episodes "
            "with duologue rollout."
        )
    find: Callable[[str], Task] = parts.tasks.find
    return find


def _refuse_strangers(config: CollectConfig, folder: EvaluationFolder) -> None:
    """Refuse to write over a file that no collection of this name wrote, and over a folder in any case."""
    path = Path(config.output)
    if path.is_dir():
        raise DuologueError(f"{config.output!r} is a folder. Give a file, such as {path / 'logs.jsonl'}.")
    if path.exists() and not folder.path.is_dir() and not config.overwrite:
        raise DuologueError(f"{config.output!r} exists already. Give another output, or --overwrite.")


def _nothing_kept(found: Collected, episodes: Iterable[Episode]) -> str:
    reasons = ", ".join(f"{reason} {n}" for reason, n in found.left_out.items())
    error = next((e.error for e in episodes if e.error), "")
    return f"No dialogue could be kept ({reasons}). {error} Mend the agent or the user, then add --overwrite."
