"""A user that is a prompted language model with the oracle context."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from duologue.engines.base import ChatModel, Sampling, SchemaChatModel, SchemaReply
from duologue.simulators._random import short_hash, turn_seed
from duologue.simulators.parsing import REPLY_SCHEMA, parse_turn
from duologue.simulators.spec import env_name
from duologue.types import Dialogue, Message, UserTurn

if TYPE_CHECKING:
    from jinja2 import Template


class PromptedUser:
    """A language model that plays the user.

    Each turn is one fresh conversation of one message: a Jinja prompt with the oracle context (what the user openly
    wants, facts, gold answer or goal document, worked solution) and the whole dialogue so far with named speakers. So
    the model never sees the roles swapped. It replies with a JSON object (see ``parsing.parse_turn``). All dialogues of
    a call go to the model in one ``chat`` call; each samples with a seed of its own. A ``SchemaChatModel``, such as a
    server, is told the JSON schema of the reply, whatever the prompt.

    Notes: ``unparsed`` (no JSON object; the text was taken as it is), ``blank``, ``schema_refused`` (the server knows
    no schemas, so this turn was written freely). Wrap it in ``GuardedUser`` to catch leaks, role flips and repetition;
    ``make_simulator("prompted:MODEL", env)`` does.

    Args:
        model: the language model.
        env: ``"MathChat"`` or ``"MediumDocEditChat"``: which prompt.
        max_new_tokens: cap on the reply, the JSON object and its thought included.
        temperature: of sampling; 0 = greedy.
        template: a Jinja prompt of your own, with the variables ``task`` and ``history``; None = the shipped one.

    Raises:
        DuologueError: if there is no prompt for this environment.
    """

    def __init__(
        self,
        model: ChatModel,
        env: str,
        *,
        max_new_tokens: int = 128,
        temperature: float = 1.0,
        template: str | None = None,
    ) -> None:
        self.model = model
        self.env = env_name(env)
        self.sampling = Sampling(max_new_tokens=max_new_tokens, temperature=temperature)
        self.template = _shipped_prompt(self.env) if template is None else template

    @property
    def signature(self) -> str:
        """Return the model, the prompt's hash, the sampling and, if the model is told one, the schema's hash.

        A schema that is heeded makes another user. Whether it was refused is known only later: see the notes.
        """
        cap, heat = self.sampling.max_new_tokens, self.sampling.temperature
        told = f"|schema:{short_hash(json.dumps(REPLY_SCHEMA))}" if isinstance(self.model, SchemaChatModel) else ""
        return f"prompted:{self.model.signature}|prompt:{short_hash(self.template)}|t:{heat:g}|max:{cap}{told}"

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        """Return the user's next turn for each dialogue."""
        if not dialogues:
            return []
        prompts = [[Message(role="user", content=self.prompt(dialogue))] for dialogue in dialogues]
        replies = self._ask(prompts, [turn_seed(dialogue) for dialogue in dialogues])
        pairs = zip(dialogues, replies, strict=True)
        return [_turn(reply, opening=not dialogue.messages) for dialogue, reply in pairs]

    def prompt(self, dialogue: Dialogue) -> str:
        """Return what the model reads for the dialogue's next user turn."""
        return _compiled(self.template).render(task=dialogue.task, history=dialogue.messages)

    def _ask(self, prompts: list[list[Message]], seeds: list[int]) -> list[SchemaReply]:
        if isinstance(self.model, SchemaChatModel):
            return self.model.chat_to_schema(prompts, self.sampling, seeds, REPLY_SCHEMA)
        return [SchemaReply(text, taken=True) for text in self.model.chat(prompts, self.sampling, seeds)]


def _turn(reply: SchemaReply, opening: bool) -> UserTurn:
    turn = parse_turn(reply.text, opening)
    return turn if reply.taken else replace(turn, notes={**turn.notes, "schema_refused": 1.0})


def _shipped_prompt(env: str) -> str:
    return files("duologue.simulators").joinpath("prompts", f"{env}.jinja").read_text(encoding="utf-8")


@cache
def _compiled(template: str) -> "Template":
    from jinja2 import Environment, StrictUndefined

    env = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    return env.from_string(template)
