"""A user that is a language model trained on what people wrote (Stage 1 of arXiv:2605.26403)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from duologue.engines.base import Completion, Engine, Sampling
from duologue.errors import DuologueError
from duologue.simulators._random import derive_seed, short_hash, turn_seed
from duologue.simulators.calibrated_folder import read_note
from duologue.simulators.calibrated_layout import DECISIONS, next_prompt, parse_output
from duologue.simulators.parsing import BLANK
from duologue.simulators.spec import env_name
from duologue.types import Act, Dialogue, StopReason, UserTurn

if TYPE_CHECKING:
    from duologue.engines.models import LoadedModel
    from duologue.engines.sglang import SGLangEngine

_SEED_BITS = 31


class CalibratedUser:
    """Samples the next user turn from a model that ``duologue calibrate`` has trained.

    The model reads the oracle context and the dialogue with roles flipped, exactly as in training (see
    ``calibrated_layout``), and is sampled at temperature 1: any other would be another distribution than the one that
    was fitted. All dialogues of a call are one batch; each turn has a random stream of its own.

    An adapter is put on a base that is in memory already if that base is frozen (a policy with LoRA), else on a copy of
    its own. With a SGLang engine the adapter is loaded by its server, beside the policy's if that is the same server.

    Notes: ``unparsed`` (no decision line: the user goes on), ``cut`` (the cap on a turn's tokens bit; the turn is
    kept), ``resampled`` (said nothing but went on, and was asked once more), ``blank`` (said nothing again: the text
    becomes "...").

    Args:
        folder: output of ``duologue calibrate``.
        env: the environment that it is to be a user of; None = the one that it was calibrated for.
        dtype: of the weights, as ``load_model`` takes it.
        device: a torch device; None = the accelerator if there is one.
        loaded: the folder's model in memory; the default loads it.
        engine: a SGLang server of the base (for a user without adapter: of the folder itself) that samples instead of
            this process. Then no model is loaded here.

    Raises:
        DuologueError: if the folder is missing or incomplete, was calibrated for another environment, or the server
            does not serve it.
    """

    def __init__(
        self,
        folder: str | Path,
        env: str | None = None,
        *,
        dtype: str = "auto",
        device: str | None = None,
        loaded: LoadedModel | None = None,
        engine: SGLangEngine | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.note = read_note(self.folder)
        if env is not None and env_name(env) != self.note.env:
            raise DuologueError(
                f"The user in {str(folder)!r} was calibrated for {self.note.env}, not for {env}. Calibrate another one "
                f"with: duologue calibrate {env}."
            )
        from duologue.engines.chat import ChatFormat
        from duologue.engines.hf import TransformersEngine
        from duologue.engines.models import load_model, load_tokenizer

        path = str(self.folder.resolve())
        self._loaded: LoadedModel | None = None
        self.engine: Engine
        if engine:
            self.chat = ChatFormat(load_tokenizer(path))
            self.engine, self._name = engine, _served(engine, self.folder)
        else:
            self._loaded = loaded or load_model(path, dtype=dtype, device=device, share_base=True)
            self.chat = ChatFormat(self.loaded.tokenizer)
            pad = self.loaded.tokenizer.pad_token_id
            pad = pad if isinstance(pad, int) else self.chat.end_of_turn_id
            self.engine, self._name = TransformersEngine(self.loaded.model, pad), self.loaded.signature
        self.sampling = Sampling(max_new_tokens=self.note.max_new_tokens, temperature=1.0)

    @property
    def is_local(self) -> bool:
        """Return True if the model is in this process, False if a server samples."""
        return self._loaded is not None

    @property
    def loaded(self) -> LoadedModel:
        """Return the model in this process.

        Raises:
            DuologueError: if a server samples instead.
        """
        if self._loaded is None:
            raise DuologueError("This user's model is on a server. Make it from its folder alone to have it here.")
        return self._loaded

    @property
    def signature(self) -> str:
        """Return name and weights hash of the model, its dtype or server, and the prompt's hash."""
        return f"calibrated:{self._name}|prompt:{short_hash(self.note.prompt)}"

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        """Return the user's next turn for each dialogue.

        Raises:
            DuologueError: if a dialogue leaves no room in the model's context window.
        """
        turns = self._sample(dialogues, [turn_seed(d, _SEED_BITS) for d in dialogues])
        empty = [i for i, turn in enumerate(turns) if turn.stop is None and not turn.text]
        again = [derive_seed("blank", turn_seed(dialogues[i])) >> (128 - _SEED_BITS) for i in empty]
        for i, turn in zip(empty, self._sample([dialogues[i] for i in empty], again), strict=True):
            turns[i] = _filled(turn)
        return turns

    def _sample(self, dialogues: Sequence[Dialogue], seeds: Sequence[int]) -> list[UserTurn]:
        if not dialogues:
            return []
        prompts = [next_prompt(dialogue, self.chat, self.note.prompt) for dialogue in dialogues]
        outputs = self.engine.generate(prompts, self.sampling, self.chat.stop_ids, seeds)
        return [self._turn(output, opening=not d.messages) for output, d in zip(outputs, dialogues, strict=True)]

    def _turn(self, output: Completion, *, opening: bool) -> UserTurn:
        text = self.chat.decode(output.token_ids)
        notes = {"cut": 1.0} if output.finish == "length" else {}
        if opening:  # its decision was given
            return UserTurn(text, acts=(Act.OPEN,), notes=notes)
        turn, decided = parse_output(text)
        stop = DECISIONS[turn.decision]
        return UserTurn(turn.text, stop, _acts(stop), notes if decided else {**notes, "unparsed": 1.0})


def _served(engine: SGLangEngine, folder: Path) -> str:
    """Have a server sample from a folder's weights, and return their name there.

    An adapter is loaded; a whole model has to be what the server serves.
    """
    if (folder / "adapter_config.json").is_file():
        engine.sync_adapter(folder, 0)
        return engine.signature
    if Path(engine.model_path).resolve() != folder.resolve():
        raise DuologueError(
            f"{engine.address} serves {engine.model_path}, but the user in {str(folder)!r} has weights of its own. "
            f"Start a server with --model-path {folder}, or calibrate an adapter (--lora-rank)."
        )
    from duologue.engines.models import weights_hash

    return f"{engine.signature}|{weights_hash(folder)}"


def _acts(stop: StopReason | None) -> tuple[Act, ...]:
    if stop is None:
        return ()
    return (Act.ACCEPT, Act.STOP) if stop is StopReason.USER_SATISFIED else (Act.STOP,)


def _filled(turn: UserTurn) -> UserTurn:
    notes = {**turn.notes, "resampled": 1.0}
    if turn.text or turn.stop is not None:
        return replace(turn, notes=notes)
    return replace(turn, text=BLANK, notes={**notes, "blank": 1.0})
