"""Gymnasium environments of multi-turn dialogue. Importing this package registers them.

``gym.make("duologue.envs:MathChat-v0")`` imports it for you. No simulator, reward or language model is loaded before an
environment is made.
"""

from duologue.envs.dialogue_env import DialogueEnv
from duologue.envs.dynamics import DialogueDynamics, Transition
from duologue.envs.registration import ENV_IDS, register
from duologue.envs.spaces import UnicodeText
from duologue.envs.vector_env import DialogueVectorEnv
from duologue.envs.wrappers import ChatTemplateObservation, MessagesObservation

__all__ = [
    "ENV_IDS",
    "ChatTemplateObservation",
    "DialogueDynamics",
    "DialogueEnv",
    "DialogueVectorEnv",
    "MessagesObservation",
    "Transition",
    "UnicodeText",
]

register()
