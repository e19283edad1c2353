"""Gymnasium environments of multi-turn dialogue. Importing this package registers them, and does nothing else.

``gym.make("duologue.envs:MathChat-v0")`` imports it for you. Simulators, rewards and tasks load with the first name
that needs them, so that registration stays about as quick as importing Gymnasium.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from duologue.envs.registration import ENV_IDS, register

if TYPE_CHECKING:
    from duologue.envs.acts import AssistantAct, DialogueActs
    from duologue.envs.contexts import Context, LoggedContexts
    from duologue.envs.dialogue_env import DialogueEnv
    from duologue.envs.doc_edit_chat import MediumDocEditChatEnv, MediumDocEditChatVectorEnv
    from duologue.envs.dynamics import DialogueDynamics, Transition
    from duologue.envs.foreign import ForeignVectorEnv, foreign_vector_env
    from duologue.envs.math_chat import MathChatEnv, MathChatVectorEnv
    from duologue.envs.spaces import UnicodeText
    from duologue.envs.tabular import TabularDialogue, TabularDialogueEnv, losing_track
    from duologue.envs.vector_env import DialogueVectorEnv
    from duologue.envs.wrappers import ChatTemplateObservation, MessagesObservation

_HOMES = {
    "AssistantAct": "acts",
    "ChatTemplateObservation": "wrappers",
    "Context": "contexts",
    "DialogueActs": "acts",
    "DialogueDynamics": "dynamics",
    "DialogueEnv": "dialogue_env",
    "DialogueVectorEnv": "vector_env",
    "LoggedContexts": "contexts",
    "ForeignVectorEnv": "foreign",
    "MathChatEnv": "math_chat",
    "MathChatVectorEnv": "math_chat",
    "MediumDocEditChatEnv": "doc_edit_chat",
    "MediumDocEditChatVectorEnv": "doc_edit_chat",
    "MessagesObservation": "wrappers",
    "TabularDialogue": "tabular",
    "TabularDialogueEnv": "tabular",
    "Transition": "dynamics",
    "UnicodeText": "spaces",
    "foreign_vector_env": "foreign",
    "losing_track": "tabular",
}

__all__ = [
    "ENV_IDS",
    "AssistantAct",
    "ChatTemplateObservation",
    "Context",
    "DialogueActs",
    "DialogueDynamics",
    "DialogueEnv",
    "DialogueVectorEnv",
    "LoggedContexts",
    "ForeignVectorEnv",
    "MathChatEnv",
    "MathChatVectorEnv",
    "MediumDocEditChatEnv",
    "MediumDocEditChatVectorEnv",
    "MessagesObservation",
    "TabularDialogue",
    "TabularDialogueEnv",
    "Transition",
    "UnicodeText",
    "foreign_vector_env",
    "losing_track",
]


def __getattr__(name: str) -> Any:
    """Load a public name's module when the name is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


register()
