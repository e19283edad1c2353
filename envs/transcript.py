"""Dialogues for people to read."""

from collections.abc import Sequence

from duologue.types import Dialogue, Message

_STYLES = {"system": "dim", "user": "bold cyan", "assistant": "bold green"}


def transcript(dialogue: Dialogue) -> str:
    """Return the dialogue as text, one paragraph a message, and why it ended if it has."""
    lines = [f"{message['role']}: {message['content']}" for message in dialogue.messages]
    if dialogue.stop is not None:
        lines.append(f"[{dialogue.stop.value}] {dialogue.stop.sentence}")
    return "\n\n".join(lines)


def print_messages(messages: Sequence[Message]) -> None:
    """Print messages on the terminal, the speakers in colour."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for message in messages:
        console.print(Text(message["role"], style=_STYLES[message["role"]]), end=" ")
        console.print(Text(_visible(message["content"])))


def _visible(text: str) -> str:
    """Show escape characters instead of obeying them: a model's words must not steer the terminal."""
    return text.replace("\x1b", "\u241b").replace("\x9b", "\u241b")
