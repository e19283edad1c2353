"""The calibrated user as a simulator: what it reads, how it is read, and what it refuses."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from duologue.engines.base import Completion, Sampling
from duologue.engines.chat import ChatFormat
from duologue.engines.models import LoadedModel
from duologue.errors import DuologueError
from duologue.simulators import CalibratedUser, GuardedUser, check_simulator, make_simulator
from duologue.simulators._random import turn_seed
from duologue.simulators.calibrated_folder import CalibrationNote, read_note
from duologue.simulators.calibrated_layout import calibrated_prompt, next_prompt
from duologue.types import Act, Dialogue, StopReason, Task, UserTurn

TASK = Task("t", "say red", reference="red")
OPENED = Dialogue(TASK, 5).then("user", "say red").then("assistant", "what")


@pytest.fixture
def folder(model_folder: Path, world: SimpleNamespace, tmp_path: Path) -> Path:
    """An untrained model that passes for a calibrated user of MathChat."""
    made = tmp_path / "alice"
    shutil.copytree(model_folder, made)
    CalibrationNote("MathChat", world.PROMPT, 8, "tiny", "0" * 16, {}).write(made)
    return made


class Says:
    """An engine that says the given texts, one call after the other."""

    context_length = 512

    def __init__(self, chat: ChatFormat, *calls: Sequence[str], cut: bool = False) -> None:
        self.chat, self.calls, self.cut = chat, list(calls), cut
        self.asked: list[tuple[list[list[int]], Sampling, list[int]]] = []

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, stop_ids: Sequence[int], seeds: Sequence[int]
    ) -> list[Completion]:
        self.asked.append(([list(p) for p in prompts], sampling, list(seeds)))
        texts = self.calls.pop(0)
        assert len(texts) == len(prompts)
        ends = [] if self.cut else [self.chat.end_of_turn_id]
        ids = [(*self.chat.text_ids(text), *ends) for text in texts]
        return [Completion(i, (0.0,) * len(i), "length" if self.cut else "stop") for i in ids]


@pytest.fixture
def says(folder: Path, chat: ChatFormat) -> Callable[..., tuple[CalibratedUser, Says]]:
    def make(*calls: Sequence[str], cut: bool = False) -> tuple[CalibratedUser, Says]:
        user: Any = CalibratedUser(folder, device="cpu", dtype="float32")
        user.engine = Says(chat, *calls, cut=cut)
        return user, user.engine

    return make


Make = Callable[..., tuple[CalibratedUser, Says]]


def test_decisions_become_stops(says: Make) -> None:
    user, _ = says(["go on\nno", "satisfied\nthanks", "give up\n", "hm"])
    assert user.respond([OPENED] * 4) == [
        UserTurn("no"),
        UserTurn("thanks", StopReason.USER_SATISFIED, (Act.ACCEPT, Act.STOP)),
        UserTurn("", StopReason.USER_GAVE_UP, (Act.STOP,)),
        UserTurn("hm", notes={"unparsed": 1.0}),
    ]


def test_the_opening_has_no_decision_of_its_own(says: Make) -> None:
    user, engine = says(["satisfied\nsay red"])
    assert user.respond([Dialogue(TASK, 5)]) == [UserTurn("satisfied\nsay red", acts=(Act.OPEN,))]
    [(prompts, _, _)] = engine.asked
    assert str(user.chat.tokenizer.decode(prompts[0])).endswith("<|im_start|>assistant\ngo on\n")


def test_it_is_asked_as_it_was_trained(says: Make, world: SimpleNamespace) -> None:
    user, engine = says(["go on\na", "go on\nb"])
    others = Dialogue(TASK, 6)
    user.respond([OPENED, others])
    [(prompts, sampling, seeds)] = engine.asked
    assert prompts == [next_prompt(d, user.chat, world.PROMPT) for d in (OPENED, others)]
    assert sampling == Sampling(max_new_tokens=8, temperature=1.0)
    assert seeds == [turn_seed(OPENED), turn_seed(others)]


def test_a_cut_turn_is_kept_and_counted(says: Make) -> None:
    user, _ = says(["go on\nand then"], cut=True)
    assert user.respond([OPENED]) == [UserTurn("and then", notes={"cut": 1.0})]


def test_saying_nothing_is_asked_once_more(says: Make) -> None:
    user, engine = says(["go on\n", "go on\nfine", ""], ["go on\nred", "go on"])
    turns = user.respond([OPENED, OPENED, OPENED])
    assert turns[0] == UserTurn("red", notes={"resampled": 1.0})
    assert turns[1] == UserTurn("fine")
    assert turns[2] == UserTurn("...", notes={"resampled": 1.0, "blank": 1.0})
    assert engine.asked[1][2][0] != engine.asked[0][2][0]
    user, _ = says([""], ["give up\n"])
    assert user.respond([OPENED]) == [UserTurn("", StopReason.USER_GAVE_UP, (Act.STOP,), {"resampled": 1.0})]


def test_the_contract_of_simulators(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())  # the checker sends messages of 10,000 characters
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 32768}))
    user = CalibratedUser(folder, device="cpu", dtype="float32")
    check_simulator(user, [TASK, Task("u", "say blue", reference="blue")], max_turns=0)  # untrained: may never leave
    assert user.respond([]) == []


def test_seeds_fix_the_turn_whatever_the_batch(folder: Path) -> None:
    user = CalibratedUser(folder, device="cpu", dtype="float32")
    asked = [Dialogue(TASK, seed).then("user", "say red").then("assistant", "what") for seed in range(6)]
    together = user.respond(asked)
    assert [user.respond([d])[0] for d in reversed(asked)][::-1] == together
    assert len({turn.text for turn in together}) > 3


def test_specs_watch_but_do_not_mend(folder: Path) -> None:
    user = make_simulator(f"calibrated:{folder}", "MathChat-v0")
    assert isinstance(user, GuardedUser)
    assert not user.mend
    assert user.signature.startswith("calibrated:alice|")
    assert user.signature.endswith("|watched")


def test_watching_counts_leaks_and_leaves_the_text(says: Make, world: SimpleNamespace) -> None:
    task = Task("t", "How many are left?", reference="42")
    dialogue = Dialogue(task, 1).then("user", "How many are left?").then("assistant", "Let me see.")
    texts = ["go on\nUser: it is 42", "go on\nHow can I help you?", "go on\nHow many are left?"]
    user, engine = says(texts)
    turns = GuardedUser(user, mend=False).respond([dialogue] * 3)
    assert [turn.text for turn in turns] == [text.removeprefix("go on\n") for text in texts]
    assert turns[0].notes == {"guard_leak": 1.0, "guard_control": 1.0}
    assert turns[1].notes == {"guard_role_flip": 1.0}
    assert turns[2].notes == {"guard_restart": 1.0}
    assert len(engine.asked) == 1  # nobody is asked again for a fault


def test_signature_follows_weights_and_prompt(folder: Path, world: SimpleNamespace) -> None:
    one = CalibratedUser(folder, device="cpu", dtype="float32").signature
    CalibrationNote("MathChat", world.PROMPT + "!", 8, "tiny", "0" * 16, {}).write(folder)
    other = CalibratedUser(folder, device="cpu", dtype="float32").signature
    assert one.split("|prompt:")[0] == other.split("|prompt:")[0]
    assert one != other


def test_another_environment_is_refused(folder: Path) -> None:
    with pytest.raises(
        DuologueError, match=r"calibrated for MathChat, not for MediumDocEditChat-v0. .* duologue calib"
    ):
        CalibratedUser(folder, "MediumDocEditChat-v0")
    assert CalibratedUser(folder, "MathChat-v0", device="cpu").note.env == "MathChat"


def test_a_dialogue_without_room_is_an_error_of_its_own(folder: Path) -> None:
    user = CalibratedUser(folder, device="cpu", dtype="float32")
    with pytest.raises(DuologueError, match="leaves no room"):
        user.respond([OPENED.then("user", "a").then("assistant", "x1 " * 900)])


def broken(text: str) -> Callable[[Path], None]:
    return lambda file: (file.write_text(text), None)[1]


def edited(**changes: object) -> Callable[[Path], None]:
    return lambda file: (file.write_text(json.dumps({**json.loads(file.read_text()), **changes})), None)[1]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (Path.unlink, "has no calibration.json, so it holds no calibrated user, or its training was broken off"),
        (broken("{"), "cannot be read .* Calibrate again"),
        (broken("{}"), "cannot be read .* Calibrate again"),
        (edited(format=0), "another layout .* Calibrate again"),
        (edited(prompt="x"), "another layout of dialogues, or edited since"),
        (edited(decisions=["go on", "bye"]), "another layout"),
    ],
)
def test_incomplete_folders(folder: Path, damage: Callable[[Path], None], message: str) -> None:
    damage(folder / "calibration.json")
    with pytest.raises(DuologueError, match=message):
        make_simulator(f"calibrated:{folder}", "MathChat")


def test_notes_read_back(tmp_path: Path) -> None:
    note = CalibrationNote("MathChat", calibrated_prompt("MathChat"), 8, "b", "0" * 16, {"epochs": 1.5})
    note.write(tmp_path)
    assert read_note(tmp_path) == note


def test_a_model_in_memory_is_taken(folder: Path, load: Callable[[], LoadedModel]) -> None:
    loaded = load()
    user = CalibratedUser(folder, loaded=loaded)
    assert user.is_local
    assert user.loaded.model is loaded.model
