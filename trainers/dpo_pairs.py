"""From a configuration of DPO to preference pairs, in a folder from which a stopped run goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gymnasium as gym

import duologue.envs  # noqa: F401  (registers the environments)
from duologue.disk import whole_file, write_whole
from duologue.engines.chat import ChatFormat
from duologue.engines.hf import TransformersEngine
from duologue.engines.models import LoadedModel
from duologue.envs.contexts import LoggedContexts
from duologue.envs.making import named_errors
from duologue.errors import DuologueError
from duologue.json_files import drop_cut_line, read_lines, read_object
from duologue.trainers.agents import Limits, TokenAgent
from duologue.trainers.dpo_config import DpoConfig
from duologue.trainers.episode_log import JsonLines
from duologue.trainers.forward_sampling import History, drawn_histories, sample_forward
from duologue.trainers.preference_pairs import PairCounts, PreferencePair, ValuedContext, count_pairs
from duologue.trainers.static import MakeContextEnv, check_room

OnProgress = Callable[[int, int, float | None], None]
"""Called with histories done, histories in all, and the mean value of replies so far (None without any)."""
HOPELESS = 8
"""So many histories without one scored continuation end a run."""
_FREE = {"dialogues", "held_out", "max_contexts", "num_envs", "output", "beta", "learning_rate", "epochs", "batch_size"}
_FREE |= {"lora_rank", "lora_top_layers"}
"""Fields that a folder with valued replies may change, since no value depends on them; files may move."""


class NothingToPreferError(DuologueError):
    """No two replies to a history differ in value."""


def value_replies(
    config: DpoConfig,
    contexts: LoggedContexts,
    loaded: LoadedModel,
    *,
    make_env: MakeContextEnv | None = None,
    on_progress: OnProgress | None = None,
) -> list[ValuedContext]:
    """Sample replies to logged histories and value them, as far as the output folder does not hold them already.

    ``replies.jsonl`` there gets a line as soon as a history is done, so that another call goes on. Histories without
    any scored continuation are played again then.

    Args:
        config: everything that is not an object.
        contexts: the histories.
        loaded: the policy.
        make_env: makes the environment; the default follows the configuration.
        on_progress: follows the histories.

    Raises:
        DuologueError: if the folder holds other replies, a history leaves no room for a reply, or nothing could be
            scored.
    """
    policy = _policy(config, loaded)
    check_room(contexts, policy)
    histories = drawn_histories(contexts, config.max_contexts, config.seed)
    file = JsonLines(Path(config.output) / "replies.jsonl")
    known = {c.context_id: c for c in _read(file.path) if c.distinct()}
    _claim(config, {"contexts": contexts.signature, "policy": loaded.signature}, begun=file.path.is_file())
    missing = [history for history in histories if history.context.context_id not in known]

    def keep(valued: ValuedContext) -> None:
        file.append([valued.to_json()])
        known[valued.context_id] = valued
        _refuse_hopeless(known.values(), min(HOPELESS, len(histories)))
        if on_progress:
            on_progress(len(known), len(histories), _mean_value(known.values()))

    if missing:
        _play(config, contexts, policy, missing, make_env or _env_maker(config), keep)
    return [known[history.context.context_id] for history in histories]


def write_pairs(folder: Path, valued: Sequence[ValuedContext]) -> tuple[list[PreferencePair], PairCounts]:
    """Write ``pairs.jsonl`` (TRL's conversational preference format) and ``counts.json``, and return both.

    Raises:
        NothingToPreferError: if no two replies to a history differ in value; both files are there.
    """
    pairs, counts = [pair for context in valued if (pair := context.pair())], count_pairs(valued)
    with whole_file(folder / "pairs.jsonl") as file:
        file.writelines(json.dumps(pair.to_json(), ensure_ascii=False) + "\n" for pair in pairs)
    write_whole(folder / "counts.json", json.dumps(asdict(counts), indent=2) + "\n")
    if not pairs:
        raise NothingToPreferError(
            f"There is nothing to prefer: {counts} Raise replies, continuations or temperature, or begin with a policy "
            "that sometimes succeeds (duologue train clone)."
        )
    return pairs, counts


def _play(
    config: DpoConfig,
    contexts: LoggedContexts,
    policy: TokenAgent,
    histories: Sequence[History],
    make_env: MakeContextEnv,
    keep: Callable[[ValuedContext], None],
) -> None:
    env = make_env(min(config.num_envs, len(histories) * config.replies * config.continuations), contexts)
    try:
        sample_forward(env, policy, histories, config, keep)
    finally:
        env.close()


def _policy(config: DpoConfig, loaded: LoadedModel) -> TokenAgent:
    chat = ChatFormat(loaded.tokenizer, config.system_prompt)
    pad = loaded.tokenizer.pad_token_id
    engine = TransformersEngine(loaded.model, pad if isinstance(pad, int) else chat.end_of_turn_id)
    limits = Limits(config.max_tokens_per_turn, config.max_total_tokens)
    return TokenAgent(engine, chat, limits, temperature=config.temperature, name=loaded.signature)


def _env_maker(config: DpoConfig) -> MakeContextEnv:
    given: dict[str, Any] = {"simulator": config.simulator}
    if config.max_turns is not None:
        given["max_turns"] = config.max_turns

    def make(slots: int, contexts: LoggedContexts) -> gym.vector.VectorEnv[Any, Any, Any]:
        way = "vector_entry_point"
        with named_errors(config.env):
            return gym.make_vec(config.env, num_envs=slots, vectorization_mode=way, contexts=contexts, **given)

    return make


def _read(path: Path) -> list[ValuedContext]:
    """Return what was valued so far; a last line that was cut in writing is dropped."""
    if not path.is_file():
        return []
    drop_cut_line(path)
    return read_lines(
        path, ValuedContext.from_json, "valued history", "Remove the line: its replies are then valued again."
    )


def _claim(config: DpoConfig, made_from: dict[str, str], *, begun: bool) -> None:
    """Note the configuration in the output folder, unless replies of another one are there."""
    folder = Path(config.output)
    settings = json.loads(json.dumps({**asdict(config), **made_from}))
    if begun:
        theirs = read_object(folder / "config.json", "Choose another output, or remove the folder.")
        changed = [name for name, value in settings.items() if name not in _FREE and theirs.get(name) != value]
        if changed:
            listed = ", ".join(f"{name}: {theirs.get(name)!r} -> {settings[name]!r}" for name in changed)
            raise DuologueError(f"{folder} holds other replies ({listed}). Set these back, or choose another output.")
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "config.json", json.dumps(settings, indent=2) + "\n")


def _refuse_hopeless(known: Collection[ValuedContext], enough: int) -> None:
    """Stop early where nothing can be scored, as with a user that cannot take up a history that it did not see."""
    if len(known) < enough or any(context.distinct() for context in known):
        return
    errors = next(iter(known)).errors
    raise DuologueError(
        f"No continuation of the first {len(known)} histories could be scored ({max(errors, key=errors.__getitem__)}). "
        "Give a user that can take up a history that it did not see, such as scripted, prompted:MODEL or "
        "calibrated:FOLDER, and a policy that runs."
    )


def _mean_value(known: Collection[ValuedContext]) -> float | None:
    values = [reply.value for context in known for reply in context.distinct()]
    return sum(values) / len(values) if values else None
