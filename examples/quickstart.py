"""The loop: one environment, one agent, one dialogue. Needs neither torch nor a model.

python examples/quickstart.py
"""

from __future__ import annotations

import re

import gymnasium as gym


def agent(messages: tuple[dict[str, str], ...]) -> str:
    """Ask until two numbers are known, then add them."""
    said = " ".join(message["content"] for message in messages if message["role"] == "user")
    numbers = re.findall(r"\d+", said)
    if len(numbers) < 2:
        return "What else do you know?" if numbers else "What do you know?"
    return f"Answer: {int(numbers[-2]) + int(numbers[-1])}"


def main() -> None:
    """Play one dialogue and print it."""
    env = gym.make("duologue.envs:MathChat-v0", simulator="scripted", render_mode="ansi")
    _, info = env.reset(seed=7)
    terminated = truncated = False
    while not (terminated or truncated):
        _, reward, terminated, truncated, info = env.step(agent(info["messages"]))
    print(env.render())
    print(f"stop reason: {info['stop_reason']}, reward: {reward}")


if __name__ == "__main__":
    main()
