"""Trainers: rollouts to GRPO. Names load on first use, so that importing this package stays light."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duologue.trainers.act_agents import act_agent, load_sb3_agent
    from duologue.trainers.agents import Agent, ChatAgent, FunctionAgent, Limits, TokenAgent
    from duologue.trainers.calibrated import train_calibrated
    from duologue.trainers.calibration import calibrate
    from duologue.trainers.calibration_config import CalibrateConfig, CalibratedConfig
    from duologue.trainers.config import InteractiveConfig
    from duologue.trainers.conversation import Conversation, Reply
    from duologue.trainers.dpo import train_dpo
    from duologue.trainers.dpo_config import DpoConfig
    from duologue.trainers.interactive import InteractiveTrainer
    from duologue.trainers.named_agents import parse_named_agents
    from duologue.trainers.proactive import PROACTIVE_PROMPTS
    from duologue.trainers.rollout import Rollout, Start
    from duologue.trainers.static import StaticTrainer
    from duologue.trainers.static_config import StaticConfig
    from duologue.trainers.trl_rollout import dialogue_rollout_func, seed_prompts

_HOMES = {
    "Agent": "agents",
    "CalibrateConfig": "calibration_config",
    "CalibratedConfig": "calibration_config",
    "ChatAgent": "agents",
    "Conversation": "conversation",
    "DpoConfig": "dpo_config",
    "FunctionAgent": "agents",
    "InteractiveConfig": "config",
    "InteractiveTrainer": "interactive",
    "Limits": "agents",
    "PROACTIVE_PROMPTS": "proactive",
    "Reply": "conversation",
    "Rollout": "rollout",
    "Start": "rollout",
    "StaticConfig": "static_config",
    "StaticTrainer": "static",
    "TokenAgent": "agents",
    "act_agent": "act_agents",
    "calibrate": "calibration",
    "dialogue_rollout_func": "trl_rollout",
    "load_sb3_agent": "act_agents",
    "parse_named_agents": "named_agents",
    "seed_prompts": "trl_rollout",
    "train_calibrated": "calibrated",
    "train_dpo": "dpo",
}

__all__ = [
    "Agent",
    "CalibrateConfig",
    "CalibratedConfig",
    "ChatAgent",
    "Conversation",
    "DpoConfig",
    "FunctionAgent",
    "InteractiveConfig",
    "InteractiveTrainer",
    "Limits",
    "PROACTIVE_PROMPTS",
    "Reply",
    "Rollout",
    "Start",
    "StaticConfig",
    "StaticTrainer",
    "TokenAgent",
    "act_agent",
    "calibrate",
    "dialogue_rollout_func",
    "load_sb3_agent",
    "parse_named_agents",
    "seed_prompts",
    "train_calibrated",
    "train_dpo",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
