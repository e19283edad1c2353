"""MediumDocEditChat: write a document with a person who knows what they want when they see it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from duologue.envs.contexts import LoggedContexts
from duologue.envs.defaults import fill_parts
from duologue.envs.dialogue_env import DialogueEnv
from duologue.envs.parts import CALL_TIMEOUT, MAX_CHARS
from duologue.envs.tasks.base import TaskSource
from duologue.envs.vector_env import DialogueVectorEnv
from duologue.rewards.base import Reward
from duologue.simulators.base import Simulator


class MediumDocEditChatEnv(DialogueEnv):
    """A person wants an article written and has a document in mind that only they know.

    ## Description
    The user opens with a topic, answers questions about content and tone, and compares each draft with the document
    that they want. The assistant should find out what that is and hand over a draft close to it.

    ## Action Space
    `UnicodeText(max_chars)`: the assistant's message.

    ## Observation Space
    `UnicodeText(max_chars)`: the user's latest message; "" once a limit or an error has ended the dialogue. `info` has
    the history (`messages`); neither ever has the hidden part of the task.

    ## Rewards
    0 until the dialogue ends, then the BLEU, in [0, 1], of the last document that the assistant handed over against the
    goal document. If it could not be scored, the reward is 0.0 and `info["scored"]` is False: leave such dialogues out.

    ## Starting State
    A task drawn from `tasks` by the seed of `reset` (or `options={"task_id": …}`) and the opening message of a user
    whose persona is drawn from the same seed. With `contexts`, a logged history that ends with the user.

    ## Episode End
    Terminated when the user is satisfied or gives up. Truncated after `max_turns` replies, after a reply of more than
    `max_chars` characters (both scored), or when the user simulator fails twice (not scored).
    `info["stop_reason"]` says which.

    ## Arguments
    `tasks`: a task source or what `make_tasks` takes; None = the built-in documents. `simulator`: a simulator or what
    `make_simulator` takes, `"scripted"` by default. `reward`: None = `BleuReward`. `max_turns` (6), `max_chars`,
    `call_timeout` (seconds), `render_mode` and `contexts` as in `DialogueEnv`. With scripted users the environment is
    deterministic. With a language model as the user it is as deterministic as that model's engine.

    ## Version History
    * v0: first version.
    """

    env_id: ClassVar[str] = "MediumDocEditChat-v0"

    def __init__(
        self,
        tasks: TaskSource | str | None = None,
        simulator: Simulator | str = "scripted",
        reward: Reward | None = None,
        max_turns: int = 6,
        max_chars: int = MAX_CHARS,
        call_timeout: float | None = CALL_TIMEOUT,
        render_mode: str | None = None,
        contexts: LoggedContexts | str | Path | None = None,
    ) -> None:
        parts = fill_parts("MediumDocEditChat", tasks, simulator, reward, logged=contexts is not None)
        super().__init__(*parts, max_turns, max_chars, call_timeout, render_mode, contexts)


class MediumDocEditChatVectorEnv(DialogueVectorEnv):
    """N MediumDocEditChat dialogues with one simulator call a turn; see ``MediumDocEditChatEnv`` for the task."""

    env_id: ClassVar[str] = "MediumDocEditChat-v0"

    def __init__(
        self,
        num_envs: int,
        tasks: TaskSource | str | None = None,
        simulator: Simulator | str = "scripted",
        reward: Reward | None = None,
        max_turns: int = 6,
        max_chars: int = MAX_CHARS,
        call_timeout: float | None = CALL_TIMEOUT,
        render_mode: str | None = None,
        contexts: LoggedContexts | str | Path | None = None,
    ) -> None:
        parts = fill_parts("MediumDocEditChat", tasks, simulator, reward, logged=contexts is not None)
        super().__init__(num_envs, *parts, max_turns, max_chars, call_timeout, render_mode, contexts)
