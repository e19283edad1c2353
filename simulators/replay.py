"""The user turns of logged dialogues, replayed whatever the assistant says."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from duologue.errors import DuologueError, did_you_mean
from duologue.json_files import read_line
from duologue.simulators._random import seed_after_reset, short_hash
from duologue.types import Act, Dialogue, Episode, Message, StopReason, UserTurn

_USER_STOPS = (StopReason.USER_SATISFIED, StopReason.USER_GAVE_UP)
Log = Sequence[str] | Sequence[Message]


@dataclass(frozen=True, slots=True)
class _Script:
    """One logged dialogue's user side."""

    texts: tuple[str, ...]
    stop: StopReason | None
    """The user's reason, if the last text is where they left."""
    seed: int | None = None
    """Of the dialogue, which is not the seed of the reset."""


class ReplayUser:
    """Answers with the k-th logged user turn, then leaves: for the reason in the log, else giving up.

    Where a task was logged more than once, the dialogue's seed picks the log: the first episode that was played with
    the same reset seed, else by ``seed % number of logs``. So the reset seeds and task ids of a file of episodes bring
    back its users. Episodes of one task and one seed (a GRPO group) are one person who heard different replies: the
    first of them stands for all.

    Args:
        logs: finished episodes, or for each task id the user's texts or the messages.

    Raises:
        DuologueError: if there is nothing to replay.
    """

    def __init__(self, logs: Iterable[Episode] | Mapping[str, Log]) -> None:
        self._scripts: dict[str, list[_Script]] = {}
        for task_id, script in _scripts(logs):
            self._scripts.setdefault(task_id, []).append(script)
        if not self._scripts:
            raise DuologueError("There are no logged dialogues to replay. Pass at least one with a user turn.")

    @classmethod
    def from_jsonl(cls, path: str | Path) -> Self:
        """Read episodes from a JSONL file.

        Raises:
            DuologueError: if the file is missing, or a line is no episode.
        """
        if not Path(path).is_file():
            raise DuologueError(f"There is no file {str(path)!r} to replay. Give a JSONL file of episodes.")
        lines = enumerate(Path(path).read_bytes().split(b"\n"), start=1)  # the last may do without a line end
        fix = "Give a JSONL file written by Episode.to_json."
        return cls([read_line(path, n, line, Episode.from_json, "episode", fix) for n, line in lines if line.strip()])

    @property
    def signature(self) -> str:
        """Return the number of logs and a hash of what is replayed."""
        count = sum(map(len, self._scripts.values()))
        return f"replay:{count}@{short_hash(repr(sorted(self._scripts.items())))}"

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        """Return the logged turn for each dialogue.

        Raises:
            DuologueError: if a task was never logged.
        """
        return [self._turn(dialogue) for dialogue in dialogues]

    def _turn(self, dialogue: Dialogue) -> UserTurn:
        script, k = self._find(dialogue), len(dialogue.said_by("user"))
        if k >= len(script.texts):
            return UserTurn("", script.stop or StopReason.USER_GAVE_UP, (Act.STOP,), {"log_ended": 1.0})
        last = k == len(script.texts) - 1 and k > 0
        stop = script.stop if last else None
        return UserTurn(script.texts[k], stop, (Act.OPEN,) if k == 0 else (Act.STOP,) if stop else ())

    def _find(self, dialogue: Dialogue) -> _Script:
        task_id = dialogue.task.task_id
        if task_id not in self._scripts:
            raise DuologueError(f"No dialogue on task {task_id!r} was logged. {did_you_mean(task_id, self._scripts)}")
        scripts = self._scripts[task_id]
        same_seed = [script for script in scripts if script.seed == dialogue.seed]
        return same_seed[0] if same_seed else scripts[dialogue.seed % len(scripts)]


def _scripts(logs: Iterable[Episode] | Mapping[str, Log]) -> Iterable[tuple[str, _Script]]:
    if isinstance(logs, Mapping):
        found = [(task_id, _Script(_texts(log), None)) for task_id, log in logs.items()]
    else:
        found = [(episode.task_id, _script(episode)) for episode in logs]
    return [(task_id, script) for task_id, script in found if script.texts]


def _script(episode: Episode) -> _Script:
    stop = episode.stop_reason if episode.stop_reason in _USER_STOPS else None
    seed = seed_after_reset(episode.seed) if episode.seed >= 0 else None  # no environment can be reset with less
    return _Script(_texts(episode.messages), stop, seed)


def _texts(log: Log) -> tuple[str, ...]:
    """Return the user's texts, of bare texts or of messages, blank ones left out."""
    texts = [item if isinstance(item, str) else item["content"] for item in log if _is_user(item)]
    return tuple(text for text in texts if text.strip())


def _is_user(item: str | Message) -> bool:
    return isinstance(item, str) or item["role"] == "user"
