"""Chat templates as token ids: append-only, with user text that cannot forge control tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from duologue.errors import DuologueError
from duologue.types import Message, Role

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_FILLER = r"\s*(<think>)?\s*(</think>)?\s*"
"""What a template may put before a reply, as the model itself can sample it: blanks, an empty reasoning block."""
_REMEMBERED = 4096
"""Openings and user messages whose ids are kept."""


@dataclass(frozen=True, slots=True)
class TemplateReport:
    """What re-rendering a dialogue would change against the append-only ids that we build."""

    user_turn: bool
    """Rendering [user, assistant, user] starts with the rendering of [user] + the reply, up to blanks before it."""
    user_turn_after_reasoning: bool
    """The same when the assistant's reply holds a ``<think>`` block (many templates strip it from older turns)."""


class ChatFormat:
    """Turns messages into token ids for one tokenizer.

    Sampled tokens are never re-rendered: a prompt is ``opening_ids`` once, then reply, ``user_suffix_ids``, reply, …
    Templates strip reasoning, trim blanks or double the end of turn when they re-render; appending cannot.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, system_prompt: str | None = None) -> None:
        """Check the template.

        Raises:
            DuologueError: if the tokenizer has no chat template, or its template no user turns or no end-of-turn token.
        """
        self.tokenizer = tokenizer
        self.system_prompt = system_prompt
        if not tokenizer.chat_template:
            raise DuologueError(
                "The tokenizer has no chat template, so this is a base model. Use an instruction-tuned model, or set "
                "tokenizer.chat_template (trl.clone_chat_template copies one)."
            )
        self._specials, self._controls = self._added_tokens()
        # A dialogue is laid out anew at each of its turns; what was rendered once need not be rendered again.
        self._openings = lru_cache(maxsize=_REMEMBERED)(self._opening)
        self._suffixes = lru_cache(maxsize=_REMEMBERED)(self._suffix)
        if not self.report.user_turn:
            raise DuologueError(
                "The chat template changes earlier turns when a user turn follows, so dialogues would not have the "
                "form that the model knows. Use one that preserves prefixes (trl ships training variants of many)."
            )
        _ = self.end_of_turn_id  # fails now, not in the first rollout

    def opening_ids(self, messages: Sequence[Message]) -> list[int]:
        """Return the ids of a history that ends with the user, up to where the assistant begins to write.

        Raises:
            DuologueError: if the template refuses the history, such as two user messages in a row.
        """
        return list(self._openings(tuple((m["role"], m["content"]) for m in messages)))

    def user_suffix_ids(self, text: str) -> list[int]:
        """Return the ids between the end of an assistant turn and the start of the next, with ``text`` in between."""
        return list(self._suffixes(text))

    def _opening(self, history: tuple[tuple[Role, str], ...]) -> tuple[int, ...]:
        mark = self._mark([content for _, content in history])
        masked = [self._masked(Message(role=role, content=content), mark) for role, content in history]
        return tuple(self._encode(self._render(masked), mark))

    def _suffix(self, text: str) -> tuple[int, ...]:
        return tuple(self._after_reply(text)[1:])

    def text_ids(self, text: str) -> list[int]:
        """Return the ids of a plain text, without special tokens."""
        return self._ids(text, split=True)

    @cached_property
    def end_of_turn_id(self) -> int:
        """The token that ends an assistant turn."""
        return self._after_reply("b")[0]

    @cached_property
    def stop_ids(self) -> tuple[int, ...]:
        """Tokens that end generation: the template's end of turn and the tokenizer's end of sequence."""
        eos = self.tokenizer.eos_token_id
        return tuple(dict.fromkeys([self.end_of_turn_id, *([eos] if isinstance(eos, int) else eos or [])]))

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of sampled tokens without control tokens."""
        return str(self.tokenizer.decode(list(token_ids), skip_special_tokens=True)).strip()

    @cached_property
    def report(self) -> TemplateReport:
        """Compare append-only ids with a full rendering, with and without reasoning in the reply."""
        return TemplateReport(self._preserves("fine."), self._preserves("<think>\nhm\n</think>\n\nfine."))

    def _preserves(self, reply: str) -> bool:
        before = self._render([_user("a")])
        after = self._render([_user("a"), _assistant(reply), _user("b")])
        if before.rstrip().endswith("<think>"):  # the generation prompt has opened the reasoning already
            reply = reply.removeprefix("<think>\n")
        return after.startswith(before) and bool(re.match(_FILLER + re.escape(reply), after[len(before) :]))

    def _after_reply(self, text: str) -> list[int]:
        """Return the ids from the end of an assistant turn to the start of the next; ``text`` is the user's."""
        mark = self._mark([text])
        reply = 3 * mark  # no masked token looks like this
        rendered = self._render([_user("a"), _assistant(reply), self._masked(_user(text), mark)])
        ids = self._encode(rendered.rpartition(reply)[2], mark)
        # Some templates write a blank before the token that ends the turn.
        controls = set(self._controls.values())
        end = next((i for i, token in enumerate(ids) if token in controls), None)
        if end is None:
            raise DuologueError(
                "The chat template ends the assistant's turn with plain text, so sampling could not stop there. "
                "Use a template with an end-of-turn token, which the tokenizer must know as one token."
            )
        return ids[end:]

    def _render(self, messages: Sequence[Message]) -> str:
        system = [Message(role="system", content=self.system_prompt)] if self.system_prompt is not None else []
        if messages and messages[0]["role"] == "system":
            system = []
        history = [{"role": str(m["role"]), "content": m["content"]} for m in [*system, *messages]]
        try:
            return str(self.tokenizer.apply_chat_template(history, tokenize=False, add_generation_prompt=True))
        except Exception as error:  # template authors raise what they like
            roles = ", ".join(m["role"] for m in history)
            raise DuologueError(
                f"The chat template cannot render {roles}: {error}. Use a template for multi-turn chat; some take no "
                "system prompt or want user and assistant in turns."
            ) from error

    def _masked(self, message: Message, mark: str) -> Message:
        """Replace the control tokens that a content spells by their numbers between marks, before the template sees it.

        Only after rendering could nobody tell a forged token from the template's own.
        """
        tokens = self._controls if message["role"] == "user" else self._specials  # a reply may reason in its own tags
        spelled = "|".join(map(re.escape, tokens)) or "(?!)"
        content = re.sub(spelled, lambda found: f"{mark}{tokens[found[0]]}{mark}", message["content"])
        return Message(role=message["role"], content=content)

    def _mark(self, texts: Sequence[str]) -> str:
        """Return a character for private use that occurs nowhere."""
        used = set().union(*texts, self.system_prompt or "", str(self.tokenizer.chat_template))
        return next(c for c in map(chr, range(0xE000, 0xF900)) if c not in used)

    def _encode(self, rendered: str, mark: str) -> list[int]:
        """Tokenize a rendering; what ``_masked`` has replaced becomes plain text again."""
        names = {str(number): token for token, number in self._controls.items()}
        ids: list[int] = []
        for i, piece in enumerate(rendered.split(mark)):
            ids += self._spelled(names[piece]) if i % 2 else self._ids(piece, split=False)
        return ids

    def _spelled(self, token: str) -> list[int]:
        """Return a control token's text as ordinary tokens; cut in two, as not every added token can be split."""
        return self._ids(token[:1], split=True) + self._ids(token[1:], split=True)

    def _ids(self, text: str, *, split: bool) -> list[int]:
        if not text:
            return []
        return list(self.tokenizer(text, add_special_tokens=False, split_special_tokens=split)["input_ids"])

    def _added_tokens(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return the special tokens, and these with all other added ones that the template writes; longest first."""
        added: dict[int, Any] = getattr(self.tokenizer, "added_tokens_decoder", {})
        template = str(self.tokenizer.chat_template)
        tokens = {str(t): i for i, t in sorted(added.items(), key=lambda item: -len(str(item[1]))) if str(t).strip()}
        special = {str(t) for t in added.values() if t.special}
        controls = {t: i for t, i in tokens.items() if t in special or t in template}
        return {t: i for t, i in controls.items() if t in special}, controls


def _user(text: str) -> Message:
    return Message(role="user", content=text)


def _assistant(text: str) -> Message:
    return Message(role="assistant", content=text)
