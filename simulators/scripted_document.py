"""A scripted user of MediumDocEditChat: says what they want, point by point, and compares drafts with it."""

from collections.abc import Sequence

from duologue.rewards.documents import extract_document
from duologue.simulators._text import by_relevance, content_words, covered, last_reply, question_in, told, words
from duologue.simulators._voice import Voice
from duologue.simulators.naive import perhaps_leak
from duologue.simulators.personas import Mix, find_mix
from duologue.types import Act, Dialogue, Task, UserTurn

_TOO_LONG, _TOO_SHORT = 1.6, 0.5


class ScriptedDocumentUser:
    """A seeded proxy human who has a document in mind.

    What the assistant's last message does decides the turn: it hands over a draft (accepted if it makes enough of the
    wanted points at a fitting length, else the user names missing points or the length), it asks (the user tells one
    or two points not told yet), or neither (the user is confused). Wanted points are the task's outline and facts; the
    goal document itself is only compared with, never quoted, unless the mix has vices (``personas.VICES``).

    Notes: ``accept``, ``miss_error``, ``draft``, ``coverage`` (share of points made, summed over drafts), ``reject``,
    ``too_long``, ``too_short``, ``reveal`` (points told), ``nothing_left``, ``confused``, ``gave_up``; of vices
    ``sycophantic_accept``, ``leaked``, ``overtold``.

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
        return f"scripted-document:{self.mix.signature}"

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        """Return the user's next turn for each dialogue.

        Raises:
            DuologueError: if a dialogue's last message is not the assistant's.
        """
        return [self._turn(dialogue) for dialogue in dialogues]

    def _turn(self, dialogue: Dialogue) -> UserTurn:
        voice = Voice.of(self.mix, dialogue)
        if not dialogue.messages:
            return perhaps_leak(voice, dialogue, _open(voice, dialogue.task))
        turn = _react(voice, dialogue, last_reply(dialogue))
        tired = len(dialogue.said_by("user")) >= voice.persona.patience
        return voice.gives_up() if tired and turn.stop is None else perhaps_leak(voice, dialogue, turn)


def wanted_points(task: Task) -> tuple[str, ...]:
    """Return what the user wants to read: the outline, then the facts, none twice."""
    return tuple(dict.fromkeys((*task.outline, *task.facts)))


def missing_points(task: Task, draft: str) -> list[int]:
    """Return the indices of the wanted points that a draft does not make."""
    points = wanted_points(task)
    return [i for i, point in enumerate(points) if covered(point, draft, task.reference) is False]


def coverage(task: Task, draft: str) -> float:
    """Return the share of wanted points that a draft makes, in [0, 1]; the goal document has 1.

    Points that share no word with the goal document cannot be checked and do not count. Without any left: the share of
    the goal document's content words that the draft uses.
    """
    checks = [covered(point, draft, task.reference) for point in wanted_points(task)]
    known = [check for check in checks if check is not None]
    if known:
        return sum(known) / len(known)
    goal = content_words(task.reference)
    return len(goal & content_words(draft)) / len(goal) if goal else 1.0


def length_fault(task: Task, draft: str) -> str | None:
    """Return ``too_long`` (over 1.6 times the goal document's words), ``too_short`` (under half of them), or None."""
    ratio = len(words(draft)) / max(1, len(words(task.reference)))
    return "too_long" if ratio > _TOO_LONG else "too_short" if ratio < _TOO_SHORT else None


def _open(voice: Voice, task: Task) -> UserTurn:
    opening, points = voice.opening(task.instruction), wanted_points(task)
    if not points or not voice.vice("overtelling"):
        return opening
    text = f"{opening.text} {_sentences(voice, task, range(len(points)))}"
    return UserTurn(text, acts=(Act.OPEN, Act.REVEAL), notes={"reveal": float(len(points)), "overtold": 1.0})


def _react(voice: Voice, dialogue: Dialogue, reply: str) -> UserTurn:
    draft = extract_document([reply])
    if draft is not None and draft.strip():
        return _compare(voice, dialogue, draft)
    question = question_in(reply)
    if not question or voice.chance(voice.persona.confusion):
        return UserTurn(voice.phrase(voice.phrases.confused), acts=(Act.CONFUSED,), notes={"confused": 1.0})
    return _tell(voice, dialogue, question)


def _tell(voice: Voice, dialogue: Dialogue, question: str) -> UserTurn:
    points = wanted_points(dialogue.task)
    known = told(dialogue, points)
    untold = [i for i in range(len(points)) if i not in known]
    usual = _choose(dialogue.task, by_relevance(points, untold, question), voice.persona.points_per_turn)
    if not usual:
        return UserTurn(voice.phrase(voice.phrases.write_it), acts=(Act.ASK,), notes={"nothing_left": 1.0})
    chosen = untold if voice.vice("overtelling") else usual
    text = voice.after_filler(_sentences(voice, dialogue.task, chosen))
    notes = {"reveal": float(len(chosen)), **({"overtold": 1.0} if len(chosen) > len(usual) else {})}
    return UserTurn(text, acts=(Act.REVEAL,), notes=notes)


def _choose(task: Task, candidates: Sequence[int], most: int) -> list[int]:
    """Return up to ``most`` facts with one outline point, or outline points alone when no fact is left."""
    outline = [i for i in candidates if i < _outline_size(task)]
    facts = [i for i in candidates if i >= _outline_size(task)]
    return [*facts[:most], *outline[:1]] if facts else outline[:most]


def _outline_size(task: Task) -> int:
    """Return how many of the wanted points are outline points alone; a sentence that is also a fact is none."""
    return 0 if set(task.outline) & set(task.facts) else len(dict.fromkeys(task.outline))


def _sentences(voice: Voice, task: Task, chosen: Sequence[int]) -> str:
    """Return facts as they are and outline points after a phrase such as "It should cover"."""
    points = wanted_points(task)
    facts = [points[i] for i in chosen if i >= _outline_size(task)]
    outline = [points[i].rstrip(".") for i in chosen if i < _outline_size(task)]
    return " ".join([*facts, *([f"{voice.phrase(voice.phrases.cover)} {', then '.join(outline)}."] if outline else [])])


def _compare(voice: Voice, dialogue: Dialogue, draft: str) -> UserTurn:
    share = coverage(dialogue.task, draft)
    notes = {"draft": 1.0, "coverage": share}
    length = length_fault(dialogue.task, draft)
    if share >= voice.persona.good_enough and length is None:
        return voice.satisfied(voice.phrases.accept_draft, notes)
    if voice.chance(voice.persona.miss_error):
        return voice.satisfied(voice.phrases.accept_draft, {"miss_error": 1.0, **notes})
    if voice.vice("sycophancy"):
        return voice.satisfied(voice.phrases.accept_draft, {"sycophantic_accept": 1.0, **notes})
    return _complain(voice, dialogue, draft, length, {"reject": 1.0, **notes})


def _complain(voice: Voice, dialogue: Dialogue, draft: str, length: str | None, notes: dict[str, float]) -> UserTurn:
    missing = missing_points(dialogue.task, draft)
    if missing and length != "too_long":
        return _name_missing(voice, dialogue, missing, notes)
    if length is None:
        return UserTurn(voice.phrase(voice.phrases.not_it), acts=(Act.REJECT,), notes=notes)
    options = voice.phrases.too_long if length == "too_long" else voice.phrases.too_short
    return UserTurn(voice.phrase(options), acts=(Act.REJECT, Act.CORRECT), notes={length: 1.0, **notes})


def _name_missing(voice: Voice, dialogue: Dialogue, missing: list[int], notes: dict[str, float]) -> UserTurn:
    """Name missing points, those told before first: they are the assistant's fault."""
    points = wanted_points(dialogue.task)
    known = told(dialogue, points)
    forgotten = [i for i in missing if i in known]
    chosen = _choose(dialogue.task, forgotten or missing, voice.persona.points_per_turn)
    lead = voice.phrase(voice.phrases.forgot if forgotten else voice.phrases.add)
    text = f"{lead} {_sentences(voice, dialogue.task, chosen)}"
    new = {} if forgotten else {"reveal": float(len(chosen))}
    acts = (Act.REJECT, Act.CORRECT) if forgotten else (Act.REJECT, Act.REVEAL)
    return UserTurn(text, acts=acts, notes={**notes, **new})
