"""What we rely on in the private parts of the installed TRL."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trl import GRPOConfig, GRPOTrainer

from duologue.trainers.grpo import DialogueGRPOTrainer, episode_reward
from duologue.trainers.interactive import InteractiveTrainer

SIGNATURES = {
    "_generate": ["self", "prompts"],
    "_generate_and_score_completions": ["self", "inputs"],
    "_prepare_inputs": ["self", "generation_batch"],
    "_compute_loss": ["self", "model", "inputs"],
    "_save_checkpoint": ["self", "model", "trial"],
    "_get_output_dir": ["self", "trial"],
}
RETURNS = {"_generate": 8, "_get_per_token_logps_and_entropies": 3}


def test_the_version_is_the_one_that_was_read() -> None:
    assert version("trl").startswith("1.16.")


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters(name: str) -> None:
    assert list(inspect.signature(getattr(GRPOTrainer, name)).parameters) == SIGNATURES[name]


def test_parameters_of_the_scores() -> None:
    parameters = list(inspect.signature(GRPOTrainer._get_per_token_logps_and_entropies).parameters)
    needed = ["self", "model", "input_ids", "attention_mask", "logits_to_keep", "batch_size", "compute_entropy"]
    assert parameters[:7] == needed
    ours = list(inspect.signature(DialogueGRPOTrainer._get_per_token_logps_and_entropies).parameters)
    assert ours[:5] == parameters[:5]


@pytest.mark.parametrize(("name", "arity"), RETURNS.items())
def test_number_of_returned_items(name: str, arity: int) -> None:
    source = textwrap.dedent(inspect.getsource(getattr(GRPOTrainer, name)))
    function = ast.parse(source).body[0]
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    assert [len(value.elts) for value in returned if isinstance(value, ast.Tuple)] == [arity]


def test_overridden_methods_exist_and_are_called(trainer: Callable[..., InteractiveTrainer]) -> None:
    made, called = trainer(steps=1, save_steps=1), set()

    def spy(name: str) -> Callable[..., Any]:
        original = getattr(made.trainer, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            called.add(name)
            return original(*args, **kwargs)

        return call

    names = [*SIGNATURES, "_get_per_token_logps_and_entropies"]
    for name in names:
        setattr(made.trainer, name, spy(name))
    made.train()
    assert called == set(names)


def test_attributes_that_are_read(trainer: Callable[..., InteractiveTrainer]) -> None:
    trl = trainer().trainer
    numbers = ("_step", "num_iterations", "num_generations", "num_generations_eval", "beta", "temperature")
    assert all(isinstance(getattr(trl, name), int | float) for name in numbers)
    flags = ("aux_loss_enabled", "_entropy_bonus_enabled")
    assert not any(getattr(trl, name) for name in flags)
    assert trl.top_entropy_quantile == 1.0
    assert set(trl._metrics) == {"train", "eval"}
    assert GRPOConfig.__dataclass_fields__["steps_per_generation"].default is None


def test_what_scoring_returns(trainer: Callable[..., InteractiveTrainer], world: SimpleNamespace) -> None:
    out = world.score_batch(trainer())
    ids = ["prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "tool_mask"]
    assert set(out) == {*ids, "advantages", "num_items_in_batch"}
    assert [out[name].ndim for name in ids] == [2] * 5
    assert (out["advantages"].shape, out["num_items_in_batch"].ndim) == (torch.Size([8]), 0)


def test_reward_is_passed_on_as_it_is() -> None:
    assert episode_reward(episode_reward=[1.0, None], completions=[[], []], prompts=[]) == [1.0, None]
