"""The command line, in this process and as a program."""

import os
import subprocess
import sys

from typer.testing import CliRunner, Result

from duologue.cli import app


def call(*arguments: str) -> Result:
    """Run a command here."""
    return CliRunner().invoke(app, list(arguments))


def program(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a process of its own, with further environment variables."""
    command = [sys.executable, "-m", "duologue", *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
