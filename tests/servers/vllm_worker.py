"""What runs beside vLLM: ``vllm_worker.py colocated MODEL OUTPUT`` or ``vllm_worker.py served URL OUTPUT``."""

import json
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from duologue.engines.base import Sampling
from duologue.envs.tasks.lists import TaskList
from duologue.envs.vector_env import DialogueVectorEnv
from duologue.trainers.config import InteractiveConfig
from duologue.trainers.interactive import InteractiveTrainer
from duologue.trainers.trl_vllm import TRLvLLM
from duologue.types import Dialogue, Task, UserTurn

PROMPTS = [[10, 11, 12], [20, 21], [10, 11, 12], [30]]
SEEDS = [1, 2, 3, 4]
STOPS = [33, 34, 35]


class Asks:
    """Asks for a word until the turns are spent; now and then with another length, so that dialogues are uneven."""

    signature = "asks"

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        """Return a turn for each dialogue."""
        return [UserTurn("please " * (1 + dialogue.seed % 3) + dialogue.task.instruction) for dialogue in dialogues]


def graded(dialogues: Sequence[Dialogue]) -> list[float | None]:
    """A score that differs between almost all dialogues, so that every step moves the weights."""
    return [int(sha256(repr(d.messages).encode()).hexdigest()[:4], 16) / 0xFFFF for d in dialogues]


def make_env(slots: int) -> DialogueVectorEnv:
    """Make dialogues of two turns."""
    return DialogueVectorEnv(slots, TaskList([Task("a", "say a", reference="a")], "words"), Asks(), graded, 2)


def colocated(model: str, output: str) -> None:
    """Train three steps, with adapters, from vLLM in this process."""
    trl = {"use_vllm": True, "vllm_mode": "colocate", "vllm_gpu_memory_utilization": 0.2}
    sizes: dict[str, Any] = {"groups_per_step": 2, "group_size": 4, "micro_batch_size": 4, "lora_rank": 4}
    limits: dict[str, Any] = {"max_tokens_per_turn": 12, "max_total_tokens": 300}
    config = InteractiveConfig(
        model=model, output=output, steps=3, learning_rate=0.03, dtype="float32", trl=trl, **sizes, **limits
    )
    InteractiveTrainer(config, make_env=make_env).train()


def served(url: str, output: str) -> None:
    """Sample twice from a server that TRL knows; its weights are not sent here, as that wants GPUs."""
    vllm = SimpleNamespace(mode="server", server_base_url=url, server_timeout=10.0)
    engine = TRLvLLM(SimpleNamespace(vllm_generation=vllm))
    calls = [engine.generate(PROMPTS, Sampling(12, 0.7), STOPS, SEEDS) for _ in range(2)]
    rows = [[(row.token_ids, row.logprobs, row.finish) for row in call] for call in calls]
    Path(output).write_text(json.dumps({"context": engine.context_length, "calls": rows}))


if __name__ == "__main__":
    {"colocated": colocated, "served": served}[sys.argv[1]](*sys.argv[2:])
