"""A scripted user of MathChat: opens without the facts, tells them when asked, judges answers, runs out of patience."""

from collections.abc import Sequence

from duologue.rewards.answers import committed_answer
from duologue.rewards.equality import answers_equal
from duologue.simulators._text import by_relevance, last_reply, question_in, told
from duologue.simulators._voice import Voice
from duologue.simulators.naive import perhaps_leak
from duologue.simulators.personas import Mix, find_mix
from duologue.types import Act, Dialogue, UserTurn


class ScriptedMathUser:
    """A seeded proxy human who has a problem to solve and holds its facts back until asked.

    What the assistant's last message does decides the turn, in this order: it commits to an answer (accepted if right,
    rejected if wrong, each with the persona's error rate), it asks (the user tells the most fitting fact not told yet),
    or neither (the user is confused). The gold answer is only compared with, never said, unless the mix has vices
    (``personas.VICES``).

    Notes: ``accept``, ``miss_error``, ``reject``, ``doubt``, ``check_failed``, ``reveal`` (facts told), ``volunteer``,
    ``nothing_left``, ``confused``, ``gave_up``; of vices ``sycophantic_accept``, ``leaked``, ``overtold``.

    Args:
        mix: a name in ``personas.MIXES``, a name with rates as ``personas.find_mix`` reads it, or a mix of your own.

    Raises:
        DuologueError: if there is no mix or no rate of this name.
    """

    def __init__(self, mix: str | Mix = "default") -> None:
        self.mix = find_mix(mix)

    @property
    def signature(self) -> str:
        """Return the kind of user with the mix and its hash."""
        return f"scripted-math:{self.mix.signature}"

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        """Return the user's next turn for each dialogue.

        Raises:
            DuologueError: if a dialogue's last message is not the assistant's.
        """
        return [self._turn(dialogue) for dialogue in dialogues]

    def _turn(self, dialogue: Dialogue) -> UserTurn:
        voice = Voice.of(self.mix, dialogue)
        if not dialogue.messages:
            return perhaps_leak(voice, dialogue, _open(voice, dialogue))
        turn = _react(voice, dialogue, last_reply(dialogue))
        tired = len(dialogue.said_by("user")) >= voice.persona.patience
        return voice.gives_up() if tired and turn.stop is None else perhaps_leak(voice, dialogue, turn)


def _open(voice: Voice, dialogue: Dialogue) -> UserTurn:
    opening, facts = voice.opening(dialogue.task.instruction), dialogue.task.facts
    if not facts or not voice.vice("overtelling"):
        return opening
    notes = {"reveal": float(len(facts)), "overtold": 1.0}
    return UserTurn(f"{opening.text} {voice.quote(facts)}", acts=(Act.OPEN, Act.REVEAL), notes=notes)


def _react(voice: Voice, dialogue: Dialogue, reply: str) -> UserTurn:
    answer = committed_answer([reply])
    if answer is not None:
        return _judge(voice, dialogue, answer)
    question = question_in(reply)
    if not question or voice.chance(voice.persona.confusion):
        text = voice.phrase(voice.phrases.confused)
        return _perhaps_volunteer(voice, dialogue, UserTurn(text, acts=(Act.CONFUSED,), notes={"confused": 1.0}))
    return _tell(voice, dialogue, question)


def _judge(voice: Voice, dialogue: Dialogue, answer: str) -> UserTurn:
    right = answers_equal(answer, dialogue.task.reference)
    notes = {"check_failed": 1.0} if right is None else {}
    if right:
        if not voice.chance(voice.persona.doubt_right):
            return voice.satisfied(voice.phrases.accept, notes)
        return UserTurn(voice.phrase(voice.phrases.doubt), acts=(Act.REJECT,), notes={"doubt": 1.0})
    if voice.chance(voice.persona.miss_error):
        return voice.satisfied(voice.phrases.accept, {"miss_error": 1.0, **notes})
    if voice.vice("sycophancy"):
        return voice.satisfied(voice.phrases.accept, {"sycophantic_accept": 1.0, **notes})
    text = voice.phrase(voice.phrases.reject)
    return _perhaps_volunteer(voice, dialogue, UserTurn(text, acts=(Act.REJECT,), notes={"reject": 1.0, **notes}))


def _untold(dialogue: Dialogue) -> list[int]:
    known = told(dialogue, dialogue.task.facts)
    return [i for i in range(len(dialogue.task.facts)) if i not in known]


def _tell(voice: Voice, dialogue: Dialogue, question: str) -> UserTurn:
    facts, usual = dialogue.task.facts, voice.persona.facts_per_turn
    untold = by_relevance(facts, _untold(dialogue), question)
    if not untold:
        text = voice.phrase(voice.phrases.nothing_left)
        return UserTurn(text, notes={"nothing_left": 1.0})
    chosen = untold if voice.vice("overtelling") else untold[:usual]
    text = voice.quote(facts[i] for i in chosen)
    notes = {"reveal": float(len(chosen)), **({"overtold": 1.0} if len(chosen) > usual else {})}
    return UserTurn(text, acts=(Act.REVEAL,), notes=notes)


def _perhaps_volunteer(voice: Voice, dialogue: Dialogue, turn: UserTurn) -> UserTurn:
    if not voice.chance(voice.persona.volunteers):
        return turn
    untold = _untold(dialogue)
    if not untold:
        return turn
    text = f"{turn.text} {voice.quote([dialogue.task.facts[untold[0]]])}"
    return UserTurn(text, acts=(*turn.acts, Act.REVEAL), notes={**turn.notes, "reveal": 1.0, "volunteer": 1.0})
