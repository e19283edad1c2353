"""Where tasks come from: generators, embedded texts, local files and the Hugging Face hub."""

from duologue.envs.tasks.base import TaskSource
from duologue.envs.tasks.check import check_tasks, document_gold_reply, gold_reply, math_gold_reply
from duologue.envs.tasks.documents import DocumentTasks
from duologue.envs.tasks.files import load_articles, load_gsm8k, load_sharded_gsm8k, load_tasks
from duologue.envs.tasks.hub import load_hub
from duologue.envs.tasks.lists import TaskList
from duologue.envs.tasks.math import MathTasks
from duologue.envs.tasks.notices import NoticeTasks
from duologue.envs.tasks.spec import make_tasks
from duologue.envs.tasks.splits import split_tasks

__all__ = [
    "DocumentTasks",
    "MathTasks",
    "NoticeTasks",
    "TaskList",
    "TaskSource",
    "check_tasks",
    "document_gold_reply",
    "gold_reply",
    "load_articles",
    "load_gsm8k",
    "load_hub",
    "load_sharded_gsm8k",
    "load_tasks",
    "make_tasks",
    "math_gold_reply",
    "split_tasks",
]
