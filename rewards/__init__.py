"""Rewards: finished dialogues in, one number each out."""

from duologue.rewards.answers import Answer, AnswerStatus, committed_answer, extract_answer
from duologue.rewards.base import Reward, Score, ScoredInParts, score, signature_of
from duologue.rewards.equality import answers_equal
from duologue.rewards.exact_match import ExactMatch

__all__ = [
    "Answer",
    "AnswerStatus",
    "ExactMatch",
    "Reward",
    "Score",
    "ScoredInParts",
    "answers_equal",
    "committed_answer",
    "extract_answer",
    "score",
    "signature_of",
]
