"""A text game that we did not write, trained on by ``InteractiveTrainer``: Guess The Number of GEM.

    pip install gem-llm    # Python 3.11; not needed by anything else here
    python examples/foreign_env.py --output runs/gem

GEM's environments have Gymnasium's reset and step, with texts in and out. That is all that is known of them: one
environment a slot, and the rewards of all its steps added up. The game wants the number in a LaTeX box,
which a model of 135M parameters does not draw, so ``NumbersWillDo`` puts its first number there.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from importlib.util import find_spec
from typing import Any

from duologue.envs import foreign_vector_env
from duologue.trainers import InteractiveConfig, InteractiveTrainer

GAME = "game:GuessTheNumber-v0-easy"


class NumbersWillDo:
    """The game, but any text with a number is a guess."""

    def __init__(self, game: Any) -> None:
        self.game = game

    def reset(self, *, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        """Start a game."""
        text, info = self.game.reset(seed=seed)
        return str(text), info

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Guess the first number of the text, if it has one."""
        number = re.search(r"\d+", action)
        text, *rest = self.game.step(f"\\boxed{{{number[0]}}}" if number else action)
        return str(text), *rest


def make_game() -> NumbersWillDo:
    """Return one game of GEM."""
    import gem  # type: ignore[import-not-found, unused-ignore]

    return NumbersWillDo(gem.make(GAME))


def main() -> None:
    """Train for some steps and say how the episodes ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="default", help="the policy: a folder or an id (SmolLM2-135M-Instruct)")
    parser.add_argument("--steps", type=int, default=2, help="optimiser steps (2)")
    parser.add_argument("--output", default="runs/gem", help="folder for the run (runs/gem)")
    args = parser.parse_args()
    if find_spec("gem") is None:
        print("skipped: the game is not installed. Install it: pip install gem-llm")
        return
    config = InteractiveConfig(
        env=GAME,
        model=args.model,
        output=args.output,
        steps=args.steps,
        groups_per_step=2,
        group_size=4,
        system_prompt="You play a game of guessing. Reply with a number from 1 to 10, and nothing else.",
        max_tokens_per_turn=6,
        max_total_tokens=400,
        resume=False,
    )
    trainer = InteractiveTrainer(config, make_env=lambda slots: foreign_vector_env(make_game, slots, GAME))
    trainer.train()
    episodes = trainer.episodes.read()
    print(Counter(episode.stop_reason.value for episode in episodes))
    print(f"{len(episodes)} games, mean reward {sum(e.reward or 0.0 for e in episodes) / len(episodes):.3f}")


if __name__ == "__main__":
    main()
