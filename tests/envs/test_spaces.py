"""The text space in Gymnasium's own vector environments: what they return must be what the environments said."""

import copy
import pickle
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Dict, Discrete
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.vector import utils as vector_utils

from duologue.envs.spaces import UnicodeText, without_surrogates
from duologue.errors import DuologueError

ROCKET = "\U0001f680"
utils: Any = vector_utils  # its annotations know arrays alone, not the spaces that others register


@pytest.mark.parametrize("text", ["", "plain", "∑ß漢", ROCKET * 8, "\x00\x1b\n", "\U0010ffff"])
def test_contains_any_text_that_can_be_encoded(text: str) -> None:
    assert text in UnicodeText(8)


@pytest.mark.parametrize("thing", ["x" * 9, "\ud83d", "a\udfff", None, 3, b"bytes", ["x"], np.array("x")])
def test_refuses_the_rest(thing: Any) -> None:
    assert thing not in UnicodeText(8)


def test_samples_are_members_vary_and_follow_the_seed() -> None:
    space, again = UnicodeText(2_000, seed=3), UnicodeText(2_000, seed=3)
    samples = [space.sample() for _ in range(200)]
    assert all(sample in space for sample in samples)
    assert len(set(samples)) > 150
    assert max(map(len, samples)) <= 64
    assert max(ord(c) for sample in samples for c in sample) > 0xFFFF
    assert [again.sample() for _ in range(200)] == samples


def test_equality_repr_and_pickling_go_by_the_length() -> None:
    space = UnicodeText(9)
    assert space == UnicodeText(9, seed=1)
    assert space != UnicodeText(8)
    assert space != gym.spaces.Text(9)
    assert repr(space) == "UnicodeText(9)"
    assert pickle.loads(pickle.dumps(space)) == copy.deepcopy(space) == space
    assert len({space, UnicodeText(9)}) == 1


def test_misuse_is_explained() -> None:
    with pytest.raises(DuologueError, match="at least 1"):
        UnicodeText(0)
    with pytest.raises(DuologueError, match="Leave out"):
        UnicodeText(3).sample(mask=np.ones(3))  # type: ignore[arg-type]


def test_without_surrogates() -> None:
    assert without_surrogates(f"a\ud83d{ROCKET}") == f"a\ufffd{ROCKET}"


def test_batches_are_tuples_of_strings() -> None:
    space = UnicodeText(5, seed=0)
    batch = utils.batch_space(space, 3)
    texts = utils.concatenate(space, ["a", ROCKET, ""], utils.create_empty_array(space, 3))
    assert texts == ("a", ROCKET, "")
    assert texts in batch
    assert utils.create_empty_array(space, 3) in batch
    assert list(utils.iterate(batch, texts)) == list(utils.iterate(batch, list(texts))) == ["a", ROCKET, ""]
    assert len(set(utils.batch_space(UnicodeText(50, seed=0), 3).sample())) == 3


def test_batches_inside_other_spaces() -> None:
    single = Dict({"text": UnicodeText(5), "n": Discrete(3)})
    batch = utils.batch_space(single, 2)
    items = utils.concatenate(
        single, [{"text": "abc", "n": 1}, {"text": "de", "n": 2}], utils.create_empty_array(single, 2)
    )
    assert [item["text"] for item in utils.iterate(batch, items)] == ["abc", "de"]


def test_shared_memory_is_read_when_it_is_copied_not_when_it_is_opened() -> None:
    space = UnicodeText(4)
    memory = utils.create_shared_memory(space, n=2)
    live = utils.read_from_shared_memory(space, memory, n=2)
    assert copy.deepcopy(live) == ("", "")
    utils.write_to_shared_memory(space, 0, "abcd", memory)
    utils.write_to_shared_memory(space, 1, ROCKET * 4, memory)
    before = copy.deepcopy(live)
    utils.write_to_shared_memory(space, 0, "z", memory)
    assert before == ("abcd", ROCKET * 4)
    assert copy.deepcopy(live) == ("z", ROCKET * 4) == tuple(live)
    assert (live[0], live[-1], live[:1], len(live)) == ("z", ROCKET * 4, ("z",), 2)
    with pytest.raises(DuologueError, match="max_chars"):
        utils.write_to_shared_memory(space, 0, "abcde", memory)
    assert live[0] == "z"


class Parrot(gym.Env[str, str]):
    """Says what it was told, with its name and step, at changing lengths; ends at "end"."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, name: str) -> None:
        self.observation_space = self.action_space = UnicodeText(40)
        self.name, self.resets = name, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.resets += 1
        return f"{ROCKET}{self.name} opens {self.resets} {seed}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return f"{self.name}∑{action}", 0.0, action == "end", False, {}


@pytest.fixture
def by_value() -> Iterator[None]:
    """Let spawned processes, which cannot import this test, receive its classes by value."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def makers() -> list[Any]:
    return [lambda: Parrot("A"), lambda: Parrot("Bb")]


ASYNC = [
    SimpleNamespace(context="fork", shared_memory=True),
    SimpleNamespace(context="spawn", shared_memory=True),
    SimpleNamespace(context="fork", shared_memory=False),
]


@pytest.mark.usefixtures("by_value")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("how", ASYNC, ids=lambda how: f"{how.context}-{how.shared_memory}")
def test_async_says_what_sync_says_every_step_and_after_a_masked_reset(how: SimpleNamespace) -> None:
    """Gymnasium's own Text returns one constant text here, and an unmasked slot must keep its observation."""
    kept: list[list[tuple[str, ...]]] = []
    mode = AutoresetMode.DISABLED
    for env in (
        SyncVectorEnv(makers(), autoreset_mode=mode),
        AsyncVectorEnv(makers(), autoreset_mode=mode, **vars(how)),
    ):
        seen = [env.reset(seed=[5, 6])[0]]
        for actions in [("a", "a longer reply"), ("b" * 9, ROCKET), ("", "end")]:
            seen.append(env.step(actions)[0])
            assert seen[-1] in env.observation_space
        seen.append(env.reset(seed=[7, 8], options={"reset_mask": np.array([False, True])})[0])
        seen.append(env.step(["c", "d"])[0])
        env.close()
        kept.append(seen)
    sync, parallel = kept
    assert sync == parallel
    assert sync[1:4] == [("A∑a", "Bb∑a longer reply"), (f"A∑{'b' * 9}", f"Bb∑{ROCKET}"), ("A∑", "Bb∑end")]
    assert sync[4:] == [("A∑", f"{ROCKET}Bb opens 2 8"), ("A∑c", "Bb∑d")]


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_reset_after_the_end_drops_no_action(mode: AutoresetMode) -> None:
    """Gymnasium drops it without shared memory; with it, the default, the text space makes things right."""
    env = AsyncVectorEnv(makers(), context="fork", autoreset_mode=mode)
    env.reset(seed=0)
    env.step(("end", "end"))
    env.reset(seed=0)
    assert env.step(("first", "word"))[0] == ("A∑first", "Bb∑word")
    env.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_an_uncopied_observation_is_a_live_view() -> None:
    env = AsyncVectorEnv(makers(), context="fork", copy=False)
    view, _ = env.reset(seed=0)
    env.step(("x", "y"))
    assert tuple(view) == ("A∑x", "Bb∑y")
    env.close()
