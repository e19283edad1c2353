"""Trainers: rollouts to GRPO. Names load on first use, so that importing this package stays light."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duologue.trainers.agents import Agent, ChatAgent, FunctionAgent, Limits, TokenAgent
    from duologue.trainers.calibrated import train_calibrated
    from duologue.trainers.calibration import calibrate
    from duologue.trainers.calibration_config import CalibrateConfig, CalibratedConfig
    from duologue.trainers.config import InteractiveConfig
    from duologue.trainers.conversation import Conversation, Reply
    from duologue.trainers.interactive import InteractiveTrainer
    from duologue.trainers.rollout import Rollout, Start

_HOMES = {
    "Agent": "agents",
    "CalibrateConfig": "calibration_config",
    "CalibratedConfig": "calibration_config",
    "ChatAgent": "agents",
    "Conversation": "conversation",
    "FunctionAgent": "agents",
    "InteractiveConfig": "config",
    "InteractiveTrainer": "interactive",
    "Limits": "agents",
    "Reply": "conversation",
    "Rollout": "rollout",
    "Start": "rollout",
    "TokenAgent": "agents",
    "calibrate": "calibration",
    "train_calibrated": "calibrated",
}

__all__ = [
    "Agent",
    "CalibrateConfig",
    "CalibratedConfig",
    "ChatAgent",
    "Conversation",
    "FunctionAgent",
    "InteractiveConfig",
    "InteractiveTrainer",
    "Limits",
    "Reply",
    "Rollout",
    "Start",
    "TokenAgent",
    "calibrate",
    "train_calibrated",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
