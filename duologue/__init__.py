"""duologue: Gymnasium environments of multi-turn dialogue, pluggable users, and trainers that consume them.

Importing this package loads neither torch nor transformers. Importing ``duologue.envs`` registers
``MathChat-v0`` and ``MediumDocEditChat-v0`` with Gymnasium.
"""

from duologue.errors import DuologueError
from duologue.types import Act, Dialogue, Episode, Message, StopReason, Task, UserTurn

__version__ = "0.1.0"

__all__ = [
    "Act",
    "Dialogue",
    "DuologueError",
    "Episode",
    "Message",
    "StopReason",
    "Task",
    "UserTurn",
    "__version__",
]
