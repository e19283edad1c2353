"""``python -m benchmarks``: all speeds, each as a share of the least that the same work can cost on this machine."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import env_speed
from benchmarks.machine import describe_machine
from benchmarks.timing import Comparison

PARTS = ("envs", "rollout", "training")


def main() -> None:
    """Measure, print a table, and write JSON if asked, after every comparison so that an end by Ctrl-C loses little."""
    options = parse(sys.argv[1:])
    load = describe_machine()["load"]
    report: dict[str, Any] = {"quick": options.quick, "model": options.model, "results": []}
    for comparison in run(options):
        report["machine"] = describe_machine() | {"load_before": load}
        report["results"].append(comparison.to_json())
        if options.output:
            options.output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        print(f"done: {comparison.name}", file=sys.stderr)
    show(report)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--model", default="default", help="'default', a folder or a Hugging Face id")
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="write every repetition to this file")
    parser.add_argument("--only", choices=PARTS, help="measure one part")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace) -> Iterator[Comparison]:
    """Measure the parts that were asked for; torch and the model load only if they are needed."""
    chosen = PARTS if options.only is None else (options.only,)
    if "envs" in chosen:
        yield from env_speed.measure(5 if options.quick else 15)
    if chosen == ("envs",):
        return
    from benchmarks import rollout_speed, train_speed
    from duologue.engines import load_model

    loaded = load_model(options.model)
    repetitions = 3 if options.quick else 9
    if "rollout" in chosen:
        yield from rollout_speed.measure(loaded, repetitions)
    if "training" in chosen:
        yield from train_speed.measure(loaded, repetitions)


def show(report: dict[str, Any]) -> None:
    """Print results and machine."""
    table = Table("what", "per second", "bare", "share", "range of shares", "bare is")
    for row in report["results"]:
        low, high = row["share_range"]
        ours, bare = f"{row['ours_per_s']:,.0f} {row['unit']}", f"{row['baseline_per_s']:,.0f}"
        table.add_row(row["name"], ours, bare, f"{row['share']:.2f}", f"{low:.2f} to {high:.2f}", row["baseline"])
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    facts = {name.replace("_", " "): value for name, value in report["machine"].items() if name != "versions"}
    facts |= report["machine"]["versions"]
    said = ", ".join(f"{name} {value}" for name, value in facts.items() if value is not None)
    console.print(said, highlight=False)
    if facts["load before"] > 0.5:
        console.print("Other processes were running: trust the shares more than the speeds.", highlight=False)


if __name__ == "__main__":
    main()
