"""The commands. Each reads a configuration (flags, YAML), loads what it needs, and prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from duologue.analysis.compare.config import CompareConfig
from duologue.analysis.config import CollectConfig, EvaluateConfig, RolloutConfig
from duologue.analysis.theory.config import TheoryConfig
from duologue.cli.calibrate import add_calibration
from duologue.cli.compare import EXAMPLES as COMPARE_EXAMPLES
from duologue.cli.compare import run_compare
from duologue.cli.fidelity import add_fidelity
from duologue.cli.flags import configured, with_clean_errors
from duologue.cli.logs import logs, run_collect
from duologue.cli.plan import add_plan
from duologue.cli.play import PlayConfig, play_dialogue
from duologue.cli.progress import progress_line
from duologue.cli.scratch import EXAMPLES as SCRATCH_EXAMPLES
from duologue.cli.scratch import run_pretrain
from duologue.cli.shift import add_shift
from duologue.cli.theory import EXAMPLES as THEORY_EXAMPLES
from duologue.cli.theory import run_theory
from duologue.cli.train import train
from duologue.trainers.scratch import ScratchConfig

app = typer.Typer(
    help="Multi-turn dialogue RL with pluggable user simulators.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(train, name="train")
app.add_typer(logs, name="logs")
add_calibration(app, train)
add_shift(app)
add_fidelity(app)
add_plan(app)

_SHOWN = 3


def _examples(*lines: str) -> str:
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


@app.command(
    "evaluate",
    epilog=_examples(
        "duologue evaluate MathChat-v0 --agent default --episodes 200",
        "duologue evaluate MathChat-v0 --agent runs/interactive --output runs/after",
        "duologue evaluate MediumDocEditChat-v0 --agent http://localhost:8000/v1",
        "duologue evaluate MathChat-v0 --agent my_module:reply --simulator prompted:default",
        "duologue evaluate --config evaluate.yaml --episodes 400",
    ),
)
@configured(EvaluateConfig)
def evaluate_command(config: EvaluateConfig) -> None:
    """Measure an agent: score, turns, tokens, stop reasons and user leaks with 95 % intervals.

    Stop it at any time; the same command goes on where it was.
    """
    from rich.console import Console

    from duologue.analysis.evaluation import evaluate
    from duologue.analysis.report import table

    with progress_line("evaluate") as show:
        report = evaluate(config, on_progress=show)
    Console().print(table(report))
    typer.echo(f"Episodes and reports are in {config.output}")
    if not report.scored:
        typer.echo("error: no dialogue was scored. The errors above say what to mend; then add --overwrite.", err=True)
        raise typer.Exit(1)


@app.command(
    "rollout",
    epilog=_examples(
        "duologue rollout MathChat-v0 --agent default --episodes 8 --output episodes.jsonl",
        "duologue rollout MathChat-v0 --agent my_module:reply --simulator human --num-envs 1 --episodes 1",
    ),
)
@configured(RolloutConfig)
def rollout_command(config: RolloutConfig) -> None:
    """Play dialogues, write them as JSON lines (one episode each), and print the first few."""
    from duologue.analysis.play import rollout
    from duologue.analysis.report import transcript

    with progress_line("rollout") as show:
        episodes = rollout(config, on_progress=show)
    typer.echo("\n\n".join(map(transcript, episodes[:_SHOWN])))
    typer.echo(f"\n{len(episodes)} episodes are in {config.output}")


app.command(
    "collect",
    epilog=_examples(
        "duologue collect MathChat-v0 --agent default --episodes 500 --output logs.jsonl",
        "duologue collect MathChat-v0 --agent my_module:reply --simulator scripted --episodes 2000",
    ),
)(configured(CollectConfig)(run_collect))


app.command("pretrain", epilog=_examples(*SCRATCH_EXAMPLES))(
    configured(ScratchConfig, positional="dialogues")(run_pretrain)
)
app.command("compare", epilog=_examples(*COMPARE_EXAMPLES))(configured(CompareConfig)(run_compare))
app.command("theory", epilog=_examples(*THEORY_EXAMPLES))(configured(TheoryConfig)(run_theory))


@app.command(
    "play", epilog=_examples("duologue play MathChat-v0", "duologue play MediumDocEditChat-v0 --simulator scripted")
)
@configured(PlayConfig)
def play_command(config: PlayConfig) -> None:
    """Play the assistant yourself, at the terminal."""
    play_dialogue(config)


@app.command(
    "user-rates",
    epilog=_examples(
        "duologue user-rates runs/after/episodes.jsonl",
        "duologue user-rates scripted.jsonl prompted.jsonl --tasks math:level=2,split=test",
    ),
)
def user_rates_command(
    files: Annotated[list[Path], typer.Argument(metavar="EPISODES.jsonl…", help="Files of episodes.")],
    tasks: Annotated[
        str | None,
        typer.Option("--tasks", help="Task source; the default is the run's own, or the environment's test split."),
    ] = None,
) -> None:
    """Measure the users of finished dialogues: what they let pass, give away and tell at once, a column per file."""
    from duologue.cli.user_rates import print_user_rates

    with_clean_errors(lambda: print_user_rates(files, tasks))
