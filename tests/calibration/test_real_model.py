"""The real default model learns to speak as people do."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from duologue.simulators import make_simulator
from duologue.trainers.calibration import calibrate
from duologue.trainers.calibration_config import CalibrateConfig
from duologue.types import Dialogue


@pytest.mark.slow
def test_the_default_model_takes_up_the_decision_line(world: SimpleNamespace, tmp_path: Path) -> None:
    config = CalibrateConfig(
        output=str(tmp_path / "user"), epochs=6, batch_size=4, lora_top_layers=4, learning_rate=2e-3
    )
    people = world.people(8)
    folder = calibrate(config, people[:4], people[6:])
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["change"]["high"] < -0.5
    assert metrics["after"]["per_decision"]["value"] < metrics["before"]["per_decision"]["value"]
    user = make_simulator(f"calibrated:{folder}", "MathChat-v0")
    asked = [Dialogue(people[0].task, seed, people[0].messages[:2]) for seed in range(4)]
    turns = user.respond(asked)
    assert sum("unparsed" in turn.notes for turn in turns) <= 2  # hardly ever before
    assert len({turn.text for turn in turns}) > 1
