"""Adapters on the layers that were asked for."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from peft import get_peft_model

from duologue.engines.models import LoadedModel
from duologue.errors import DuologueError
from duologue.trainers.adapters import linear_names, lora_config
from duologue.trainers.interactive import InteractiveTrainer
from duologue.trainers.progress import quiet_console

Load = Callable[[], LoadedModel]
LINEAR = ["down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"]


def wanted(rank: int, top: int | None) -> SimpleNamespace:
    return SimpleNamespace(lora_rank=rank, lora_top_layers=top)


def adapted_layers(load: Load, top: int | None) -> dict[str, int]:
    """Number of adapted modules by layer."""
    loaded = load()
    with quiet_console():
        model = get_peft_model(loaded.model, lora_config(wanted(4, top), loaded.model))
    names = [name for name, p in model.named_parameters() if p.requires_grad]
    assert all("lora_" in name for name in names)
    layers = [name.split("layers.")[1].split(".")[0] for name in names]
    return {layer: layers.count(layer) // 2 for layer in sorted(set(layers))}


@pytest.mark.parametrize(("top", "layers"), [(None, {"0": 7, "1": 7}), (2, {"0": 7, "1": 7}), (1, {"1": 7})])
def test_adapters_sit_on_the_top_layers_only(load: Load, top: int | None, layers: dict[str, int]) -> None:
    assert adapted_layers(load, top) == layers


@pytest.mark.parametrize("top", [0, 3, -1])
def test_layers_that_the_model_lacks_are_refused(load: Load, top: int) -> None:
    with pytest.raises(DuologueError, match=rf"lora_top_layers is {top}, but the model has 2 layers. Choose 1 to 2."):
        lora_config(wanted(4, top), load().model)


def test_the_head_is_left_alone(load: Load) -> None:
    model = load().model
    assert linear_names(model) == LINEAR
    made = lora_config(wanted(4, None), model)
    assert (made.r, made.lora_alpha, made.lora_dropout) == (4, 8, 0.0)


def test_training_moves_only_the_top_adapters(trainer: Callable[..., InteractiveTrainer], load: Load) -> None:
    made = trainer({"reward": lambda ds: [float(i) for i in range(len(ds))]}, lora_rank=4, lora_top_layers=1)
    made.train()
    after = {n.replace(".base_layer", ""): t for n, t in made.trainer.model.get_base_model().state_dict().items()}
    assert all((tensor == after[name]).all() for name, tensor in load().model.state_dict().items())
    moved = [n for n, p in made.trainer.model.named_parameters() if "lora_B" in n and p.abs().max() > 0]
    assert len(moved) == 7
    assert all("layers.1." in name for name in moved)
