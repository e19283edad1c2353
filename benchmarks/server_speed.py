"""``python -m benchmarks.server_speed URL``: a SGLang server's tokens per second through us and to a bare client.

Both play the same dialogues: as many at a time, the same prompts, as many tokens a turn. The bare client does nothing
but send and read JSON, and each of its dialogues goes on without waiting for the others; ours checks answers, keeps
sessions, and ends a turn of all dialogues before the next.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

import httpx
import numpy as np

from benchmarks.machine import describe_machine
from benchmarks.timing import Comparison, compare
from duologue.engines import Sampling, SGLangEngine
from duologue.engines.sglang_server import request_body

_OPENING = 32
_USER_TOKENS = 12
_FIRST_TOKEN = 3


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server_speed", description=__doc__)
    parser.add_argument("url", help="address of the server, such as http://127.0.0.1:30000")
    parser.add_argument("--dialogues", type=int, default=32, help="dialogues at a time (32)")
    parser.add_argument("--turns", type=int, default=3, help="turns of a dialogue (3)")
    parser.add_argument("--tokens", type=int, default=24, help="tokens of a turn (24)")
    parser.add_argument("--vocabulary", type=int, default=256, help="prompts are drawn from so many token ids (256)")
    parser.add_argument("--repetitions", type=int, default=5, help="timed runs of each (5)")
    options = parser.parse_args()
    found = measure(
        options.url, options.dialogues, options.turns, options.tokens, options.vocabulary, options.repetitions
    )
    print(json.dumps({"machine": describe_machine(), **found.to_json()}, indent=2))


def measure(url: str, dialogues: int, turns: int, tokens: int, vocabulary: int, repetitions: int) -> Comparison:
    """Time both in turn; each run has dialogues of its own, so that neither finds the other's in the prefix cache."""
    engine = SGLangEngine(url, concurrency=dialogues)
    draw = np.random.default_rng(0)

    def texts(length: int) -> list[list[int]]:
        return [[int(t) for t in draw.integers(_FIRST_TOKEN, vocabulary, size=length)] for _ in range(dialogues)]

    def parts() -> list[list[list[int]]]:
        return [texts(_OPENING), *(texts(_USER_TOKENS) for _ in range(turns - 1))]

    def ours() -> float:
        return _ours(engine, parts(), tokens)

    def bare() -> float:
        return asyncio.run(_bare(url, parts(), tokens))

    return compare("SGLang server", "tokens", "a bare HTTP client", (ours, bare), repetitions)


def _ours(engine: SGLangEngine, parts: list[list[list[int]]], tokens: int) -> float:
    rows: list[list[int]] = [[] for _ in parts[0]]
    sampled = 0
    for said in parts:
        rows = [row + new for row, new in zip(rows, said, strict=True)]
        done = engine.generate(rows, Sampling(tokens), [], range(len(rows)))
        rows = [[*row, *reply.token_ids] for row, reply in zip(rows, done, strict=True)]
        sampled += sum(len(reply.token_ids) for reply in done)
    return float(sampled)


async def _bare(url: str, parts: list[list[list[int]]], tokens: int) -> float:
    limits = httpx.Limits(max_connections=len(parts[0]), max_keepalive_connections=len(parts[0]))
    async with httpx.AsyncClient(base_url=url, timeout=600, limits=limits) as client:
        sampled = await asyncio.gather(*(_dialogue(client, said, tokens) for said in zip(*parts, strict=True)))
    return float(sum(sampled))


async def _dialogue(client: httpx.AsyncClient, said: tuple[list[int], ...], tokens: int) -> int:
    """Return how many tokens were sampled: a model may end a turn early."""
    row: list[int] = []
    for new in said:
        row += new
        sent = await client.post("/generate", json=request_body(row, Sampling(tokens), None))
        answer: Any = sent.raise_for_status().json()
        row += [token for _, token, _ in answer["meta_info"]["output_token_logprobs"]]
    return len(row) - sum(map(len, said))


if __name__ == "__main__":
    main()
