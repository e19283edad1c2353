"""From the rows of known data sets to tasks. Shared by local files and the hub; each adapter is a pure function."""

import re

from duologue.envs.tasks.rows import Row
from duologue.types import Task

_CALCULATION = re.compile(r"<<[^>]*>>")
_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
_HEADING_LINE = re.compile(r"^(?:#{1,6}\s.+|\*\*[^*\n]+\*\*)[ \t]*$", re.MULTILINE)
_NOT_PROSE = re.compile(r"[-*+>|<]\s|\d+[.)]\s|[|<!]")
# A single capital before the point is an initial or an abbreviation ("U.S."), which ends no sentence.
_SENTENCE = re.compile(r".+?(?<!\b[A-Z])(?<!\b[DM]r)(?<!\bMrs)[.!?][\"”')\]]*(?=\s|$)")
_SHORTEST_SENTENCE = 5


def gsm8k_task(row: Row, task_id: str) -> Task:
    """Read a GSM8K row (``question``, ``answer`` with the result after ``####``). Nothing is held back."""
    answer = row.text("answer")
    return Task(task_id, row.text("question"), _after_hashes(row, answer), _worked(answer))


def sharded_gsm8k_task(row: Row, task_id: str) -> Task:
    """Read a row of sharded GSM8K: the first of ``shards`` is the opening, the others are the facts held back.

    Shards that are empty or only repeat the opening, of which published files hold some, are left out.
    """
    shards = row.get("shards")
    try:
        texts = tuple(str(shard["shard"]).strip() for shard in sorted(shards, key=lambda shard: int(shard["shard_id"])))
    except (KeyError, TypeError, ValueError) as error:
        raise row.error(
            f"'shards' must be a list of objects with 'shard_id' and 'shard' ({error}). Correct it."
        ) from error
    opening, facts = texts[0] if texts else "", tuple(fact for fact in texts[1:] if fact not in texts[0])
    if not opening or not facts:
        raise row.error("'shards' must hold an opening and at least one fact that are not empty. Remove this row.")
    answer = row.text("answer")
    return Task(task_id, opening, _after_hashes(row, answer), _worked(answer), facts=facts)


def math_task(row: Row, task_id: str) -> Task:
    """Read a row of MATH (``problem``, ``solution``); the answer is ``answer`` if there, else the last box."""
    solution = row.text("solution")
    answer = row.text("answer") if row.data.get("answer") else _final_answer(row, solution)
    topic = row.data.get("subject") or row.data.get("type") or ""
    metadata = {"level": str(row.data.get("level", "")), "topic": str(topic)}
    return Task(task_id, row.text("problem"), answer, solution, metadata=metadata)


def collabllm_math_task(row: Row, task_id: str) -> Task:
    """Read a row of a CollabLLM multi-turn set of problems (``single_turn_prompt``, ``single_turn_completion``)."""
    solution = row.text("single_turn_completion")
    return Task(task_id, row.text("single_turn_prompt"), _final_answer(row, solution), solution)


def collabllm_document_task(row: Row, task_id: str) -> Task:
    """Read a row of a CollabLLM multi-turn set of documents; facts and outline as in ``article_task``."""
    document = row.text("single_turn_completion")
    return _document_task(task_id, row.text("single_turn_prompt"), document)


def article_task(row: Row, task_id: str) -> Task:
    """Read an article (``title``, ``text``).

    Facts: the first sentence of each paragraph of prose, if it has five words or more and does not end with a colon.
    Outline: the headings if there are two or more (``# …`` or a line in bold), else the facts.
    """
    title = " ".join(row.text("title").split())
    return _document_task(task_id, f'I want to write an article titled "{title}".', row.text("text"))


def boxed(text: str) -> str | None:
    r"""Return what is in the last ``\boxed{…}`` of a LaTeX text, with nested braces, or None."""
    start = max(text.rfind(r"\boxed{"), text.rfind(r"\fbox{"))
    if start < 0:
        return None
    start = text.index("{", start)
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0) if text[i - 1] != "\\" else 0
        if depth == 0:
            return text[start + 1 : i].strip()
    return None


def _after_hashes(row: Row, answer: str) -> str:
    _, hashes, result = answer.rpartition("####")
    if not hashes or not result.strip():
        raise row.error("'answer' must end with '#### RESULT'. Correct or remove this row.")
    return result.strip().replace(",", "")


def _worked(answer: str) -> str:
    return _CALCULATION.sub("", answer.rpartition("####")[0]).strip()


def _final_answer(row: Row, solution: str) -> str:
    """Return the boxed answer, or what follows ``####``, or a solution of one short line as it is."""
    answer = boxed(solution)
    if answer:
        return answer
    if "####" in solution:
        return _after_hashes(row, solution)
    if len(solution) <= 60 and "\n" not in solution:
        return solution
    raise row.error(r"the solution holds neither '\boxed{…}' nor '#### RESULT'. Correct or remove this row.")


def _document_task(task_id: str, instruction: str, document: str) -> Task:
    blocks = _blocks(document)
    headings = tuple(block.strip("#* \t") for block in blocks if _HEADING_LINE.fullmatch(block))
    prose = (block for block in blocks if not _HEADING_LINE.fullmatch(block) and not _NOT_PROSE.match(block))
    sentences = (sentence for sentence in map(_first_sentence, prose) if not sentence.endswith(":"))
    facts = tuple(dict.fromkeys(s for s in sentences if len(s.split()) >= _SHORTEST_SENTENCE))
    return Task(task_id, instruction, document, facts=facts, outline=headings if len(headings) > 1 else facts)


def _blocks(document: str) -> list[str]:
    """Return the headings and paragraphs, without fenced code."""
    text = _HEADING_LINE.sub(r"\n\g<0>\n", _FENCE.sub("", document))
    return [block.strip() for block in re.split(r"\n\s*\n", text) if block.strip()]


def _first_sentence(block: str) -> str:
    text = " ".join(block.split())
    match = _SENTENCE.match(text)
    return match[0] if match else text
