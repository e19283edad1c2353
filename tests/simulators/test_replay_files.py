import json
from pathlib import Path

from duologue.simulators import ReplayUser
from duologue.types import Dialogue, Episode, Message, StopReason, Task


def test_logs_may_hold_line_separators_of_unicode(tmp_path: Path) -> None:
    said = "one\u2028two\x85three"
    messages = (Message(role="user", content=said), Message(role="assistant", content=said))
    episode = Episode("E", "t", 1, messages, StopReason.TURN_LIMIT, 0.0)
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps(episode.to_json(), ensure_ascii=False) + "\n", encoding="utf-8")
    user = ReplayUser.from_jsonl(log)
    assert user.respond([Dialogue(Task("t", "?", "!"), 1)])[0].text == said
