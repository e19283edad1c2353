"""A person at the terminal."""

from collections.abc import Callable, Sequence

from duologue.types import Act, Dialogue, StopReason, Task, UserTurn

_COMMANDS = {"/done": StopReason.USER_SATISFIED, "/give-up": StopReason.USER_GAVE_UP}


class HumanUser:
    """A person who plays the user: sees the task's hidden part once, then the assistant's messages.

    ``/done`` ends the dialogue satisfied, ``/give-up`` (or the end of input) ends it without; both may be followed by a
    last message on the same line. Blank lines are asked again.

    Args:
        read: returns a line; takes the prompt. Raises EOFError at the end of input.
        write: shows a line.
    """

    signature = "human"

    def __init__(self, read: Callable[[str], str] = input, write: Callable[[str], object] = print) -> None:
        self._read = read
        self._write = write

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        """Ask the person for the next turn of each dialogue, one after the other."""
        return [self._turn(dialogue) for dialogue in dialogues]

    def _turn(self, dialogue: Dialogue) -> UserTurn:
        self._write(_news(dialogue))
        try:
            return _parse(self._line())
        except EOFError:
            return UserTurn("", StopReason.USER_GAVE_UP, (Act.STOP,))

    def _line(self) -> str:
        while not (line := self._read("you> ").strip()):
            self._write("Say something, or leave with /done or /give-up.")
        return line


def _parse(line: str) -> UserTurn:
    command, _, rest = line.partition(" ")
    stop = _COMMANDS.get(command)
    return UserTurn(line) if stop is None else UserTurn(rest.strip(), stop, (Act.STOP,))


def _news(dialogue: Dialogue) -> str:
    """Return what the person has not seen yet: the task, with a logged history if there is one, or the latest reply."""
    if not dialogue.messages:
        return _briefing(dialogue.task)
    lines = [f"{'you' if m['role'] == 'user' else 'assistant'}> {m['content']}" for m in dialogue.messages]
    return "\n".join([_briefing(dialogue.task), *lines]) if len(dialogue.messages) == dialogue.given + 1 else lines[-1]


def _briefing(task: Task) -> str:
    sections = [
        ("What you want (open with this)", [task.instruction]),
        ("Points it should make", list(task.outline)),
        ("What you know (tell it when asked)", list(task.facts)),
        ("The goal, for your eyes only", [task.reference]),
    ]
    lines = [f"--- {task.task_id} ---"]
    for title, items in sections:
        lines += [f"{title}:", *(f"  {item}" for item in items)] if items else []
    return "\n".join([*lines, "End with /done (satisfied) or /give-up."])
