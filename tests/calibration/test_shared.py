"""One base in memory for policy and user: the same tensors, and nobody feels the other."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, Qwen3Config, Qwen3ForCausalLM

from duologue.engines.hf import TransformersEngine
from duologue.engines.models import LoadedModel, load_model
from duologue.engines.shared import base_tensors, frozen_base, second_tree
from duologue.simulators import CalibratedUser
from duologue.simulators.calibrated_folder import CalibrationNote
from duologue.types import Dialogue, Task

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # peft's, at get_peft_model
IDS = torch.tensor([[20, 21, 22, 23]])
Load = Callable[[], LoadedModel]


def adapted(model: Any, init: bool = False) -> Any:
    """A policy: LoRA with weights that do something, unless ``init``."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return get_peft_model(model, LoraConfig(r=2, target_modules=["q_proj", "down_proj"], init_lora_weights=init))


@torch.no_grad()
def logits(model: Any) -> torch.Tensor:
    return torch.as_tensor(model(IDS).logits)


def pointers(model: Any) -> dict[str, int]:
    """Where the base's weights are in memory, by their names without adapter."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    return {name: tensor.data_ptr() for name, tensor in base_tensors(base).items()}


@pytest.fixture
def user_folder(model_folder: Path, world: SimpleNamespace, tmp_path: Path) -> Path:
    """A user that is an adapter on the base of ``model_folder``, alone in memory no more."""
    made = tmp_path / "user"
    loaded = load_model(str(model_folder), dtype="float32", device="cpu")
    adapted(loaded.model).save_pretrained(str(made))
    CalibrationNote("MathChat", world.PROMPT, 8, "tiny", "0" * 16, {}).write(made)
    return made


def test_a_user_stands_on_the_policys_base(load: Load, user_folder: Path) -> None:
    alone = logits(load_model(str(user_folder), dtype="float32", device="cpu").model)
    policy = adapted(load().model)
    before = logits(policy)
    user = CalibratedUser(user_folder, device="cpu").loaded
    assert pointers(user.model) == pointers(policy)
    assert torch.equal(logits(user.model), alone)
    assert torch.equal(logits(policy), before)
    own = [p for name, p in user.model.named_parameters() if "lora_" in name]
    assert {p.data_ptr() for p in own}.isdisjoint(p.data_ptr() for p in policy.parameters())
    assert not any(p.requires_grad for p in user.model.parameters())
    assert user.signature.endswith("|float32")  # that of the base, though bfloat16 may be this machine's choice


def test_no_second_base_is_taken(load: Load, user_folder: Path) -> None:
    policy = adapted(load().model)
    user = CalibratedUser(user_folder, device="cpu").loaded.model
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in (*policy.parameters(),)}
    more = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in (*user.parameters(), *user.buffers())}
    added = sum(size for place, size in more.items() if place not in storages)
    adapter = sum(p.numel() * 4 for name, p in user.named_parameters() if "lora_" in name)
    assert added <= adapter + 1024  # buffers of rotary embeddings


def test_training_the_policy_leaves_the_user_alone(load: Load, user_folder: Path) -> None:
    policy = adapted(load().model, init=True)
    user = CalibratedUser(user_folder, device="cpu")
    asked = [Dialogue(Task("t", "say red", "red"), seed) for seed in range(4)]
    before, said = logits(user.loaded.model), user.respond(asked)
    optimizer = torch.optim.AdamW([p for p in policy.parameters() if p.requires_grad], lr=0.1)
    start = logits(policy)
    for _ in range(3):
        policy(IDS, labels=IDS).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert not torch.equal(logits(policy), start)
    assert torch.equal(logits(user.loaded.model), before)
    assert isinstance(user.engine, TransformersEngine)
    user.engine.flush()
    assert user.respond(asked) == said


def test_a_base_that_trains_is_not_shared(load: Load, user_folder: Path) -> None:
    policy = load()
    user = CalibratedUser(user_folder, device="cpu", dtype="float32").loaded
    assert set(pointers(user.model).values()).isdisjoint(pointers(policy.model).values())


def test_a_base_that_was_trained_is_not_shared(load: Load, user_folder: Path) -> None:
    policy = load().model
    policy.model.layers[1].mlp.up_proj.weight.data[0, 0] += 1  # behind torch's back
    wrapped = adapted(policy)
    user = CalibratedUser(user_folder, device="cpu", dtype="float32").loaded
    assert set(pointers(user.model).values()).isdisjoint(pointers(wrapped).values())


def test_who_must_match(load: Load, model_folder: Path) -> None:
    policy = adapted(load().model)
    name = str(model_folder)
    found = frozen_base(name, None, "cpu")
    assert found is not None
    assert found[1] == "float32"
    assert frozen_base(name, "float32", "cpu") is not None
    assert frozen_base(name, "bfloat16", "cpu") is None
    assert frozen_base(name, None, "meta") is None
    assert frozen_base(str(model_folder.parent), None, "cpu") is None
    assert frozen_base(f"{name}/../{model_folder.name}", None, "cpu") is not None
    assert pointers(policy)


def test_the_newest_base_is_taken(load: Load, user_folder: Path) -> None:
    older, newer = adapted(load().model), adapted(load().model)
    user = CalibratedUser(user_folder, device="cpu").loaded.model
    assert pointers(user) == pointers(newer) != pointers(older)


def test_the_registry_keeps_nothing_alive(load: Load, model_folder: Path) -> None:
    import gc

    policy = adapted(load().model)
    assert frozen_base(str(model_folder), None, "cpu") is not None
    del policy
    gc.collect()
    assert frozen_base(str(model_folder), None, "cpu") is None


def test_two_users_share_a_base(user_folder: Path) -> None:
    one = CalibratedUser(user_folder, device="cpu", dtype="float32").loaded.model
    two = CalibratedUser(user_folder, device="cpu", dtype="float32").loaded.model
    assert one is not two
    assert pointers(one) == pointers(two)


SHAPE: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "pad_token_id": 0,
}
FAMILIES: dict[str, Callable[[], Any]] = {
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SHAPE, tie_word_embeddings=True)),
    "gemma3": lambda: Gemma3ForCausalLM(
        Gemma3TextConfig(**SHAPE, sliding_window=8, layer_types=["sliding_attention", "full_attention"])
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_second_tree_computes_the_same(family: str, wrapped: bool) -> None:
    model = FAMILIES[family]().eval()
    expected = logits(model)
    policy = adapted(model) if wrapped else None
    tree = second_tree(model)
    assert torch.equal(logits(tree), expected)
    assert pointers(tree) == pointers(model)
    assert not any("lora" in name for name, _ in tree.named_modules())
    assert policy is None or not torch.equal(logits(policy), expected)


def test_a_tree_that_cannot_be_complete_is_refused(load: Load) -> None:
    model = load().model
    del model.model.norm.weight
    with pytest.raises(RuntimeError, match=r"keeps model.norm.weight elsewhere"):
        second_tree(model)
