"""Chat templates as token ids: append-only, with user text that cannot forge control tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from duologue.errors import DuologueError
from duologue.types import Message

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SENTINEL = "Zsentinelq"


@dataclass(frozen=True, slots=True)
class TemplateReport:
    """What re-rendering a dialogue would change against the append-only ids that we build."""

    user_turn: bool
    """Rendering [user, assistant, user] starts with the rendering of [user] + the reply."""
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
            DuologueError: if the tokenizer has no chat template or the template does not support user turns.
        """
        self.tokenizer = tokenizer
        self.system_prompt = system_prompt
        if not tokenizer.chat_template:
            raise DuologueError(
                "The tokenizer has no chat template, so this is a base model. Use an instruction-tuned model, or set "
                "tokenizer.chat_template (trl.clone_chat_template copies one)."
            )
        self._specials = sorted(filter(None, self._special_strings()), key=len, reverse=True)
        if not self.report.user_turn:
            raise DuologueError(
                "The chat template changes earlier turns when a user turn follows, so training would see other tokens "
                "than sampling did. Use a template that preserves prefixes (trl ships training variants of many)."
            )

    def opening_ids(self, messages: Sequence[Message]) -> list[int]:
        """Return the ids of a history that ends with the user, up to where the assistant begins to write."""
        return self._encode(self._render(messages), [m["content"] for m in messages])

    def user_suffix_ids(self, text: str) -> list[int]:
        """Return the ids between the end of an assistant turn and the start of the next, with ``text`` in between."""
        tail = self._render([_user("a"), _assistant(_SENTINEL), _user(text)]).rpartition(_SENTINEL)[2]
        return self._encode(tail, [text])[1:]

    def text_ids(self, text: str) -> list[int]:
        """Return the ids of a plain text, without special tokens."""
        return self._ids(text, split=True)

    @cached_property
    def end_of_turn_id(self) -> int:
        """The token that ends an assistant turn."""
        tail = self._render([_user("a"), _assistant(_SENTINEL), _user("b")]).rpartition(_SENTINEL)[2]
        return self._encode(tail, [])[0]

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
        try:
            before = self._render([_user("a")])
            after = self._render([_user("a"), _assistant(reply), _user("b")])
        except Exception as error:  # template authors raise what they like
            raise DuologueError(
                f"The chat template cannot render user, assistant, user: {error}. Use a template for multi-turn chat."
            ) from error
        return after.startswith(before + reply)

    def _render(self, messages: Sequence[Message]) -> str:
        system = [Message(role="system", content=self.system_prompt)] if self.system_prompt is not None else []
        if messages and messages[0]["role"] == "system":
            system = []
        history = [{"role": str(m["role"]), "content": m["content"]} for m in [*system, *messages]]
        return str(self.tokenizer.apply_chat_template(history, tokenize=False, add_generation_prompt=True))

    def _encode(self, rendered: str, contents: Sequence[str]) -> list[int]:
        """Tokenize a rendering in one go, except for contents that spell control tokens: these are split."""
        forged = [c.strip() for c in contents if any(special in c for special in self._specials)]
        ids: list[int] = []
        for content in forged:
            before, found, rendered = rendered.partition(content)
            ids += self._ids(before, split=False)
            ids += self._ids(found, split=True)
        return ids + self._ids(rendered, split=False)

    def _ids(self, text: str, *, split: bool) -> list[int]:
        if not text:
            return []
        return list(self.tokenizer(text, add_special_tokens=False, split_special_tokens=split)["input_ids"])

    def _special_strings(self) -> list[str]:
        added: dict[int, Any] = getattr(self.tokenizer, "added_tokens_decoder", {})
        return [*self.tokenizer.all_special_tokens, *(str(token) for token in added.values())]


def _user(text: str) -> Message:
    return Message(role="user", content=text)


def _assistant(text: str) -> Message:
    return Message(role="assistant", content=text)
