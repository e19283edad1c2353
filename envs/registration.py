"""The environment ids that Gymnasium learns when ``duologue.envs`` is imported."""

import gymnasium as gym

_ENTRY_POINTS = {
    "MathChat-v0": "duologue.envs.math_chat:MathChat",
    "MediumDocEditChat-v0": "duologue.envs.doc_edit_chat:MediumDocEditChat",
}
ENV_IDS = tuple(_ENTRY_POINTS)
"""Ids of the shipped environments of text."""
TABULAR_ID = "TabularDialogue-v0"
"""Id of the finite dialogue, whose messages are numbers."""


def register() -> None:
    """Register the shipped environments with Gymnasium, once.

    They carry no ``nondeterministic`` flag, which is right for scripted users: the same seed gives the same dialogue.
    """
    for env_id, prefix in _ENTRY_POINTS.items():
        if env_id not in gym.registry:
            gym.register(env_id, entry_point=f"{prefix}Env", vector_entry_point=f"{prefix}VectorEnv")
    if TABULAR_ID not in gym.registry:
        gym.register(TABULAR_ID, entry_point="duologue.envs.tabular:TabularDialogueEnv")
