"""The command line. Importing it is light: torch and models load with the command that needs them."""

from duologue.cli.app import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the console script ``duologue``."""
    app(prog_name="duologue")
