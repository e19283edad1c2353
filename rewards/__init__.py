"""Rewards: finished dialogues in, one number each out."""

from duologue.rewards.answers import Answer, AnswerStatus, committed_answer, extract_answer
from duologue.rewards.base import Reward, Score, ScoredInParts, score, signature_of
from duologue.rewards.bleu import BleuReward, word_bleu
from duologue.rewards.check import check_reward
from duologue.rewards.compose import WeightedSum
from duologue.rewards.documents import extract_document
from duologue.rewards.equality import answers_equal
from duologue.rewards.exact_match import ExactMatch

__all__ = [
    "Answer",
    "AnswerStatus",
    "BleuReward",
    "ExactMatch",
    "Reward",
    "Score",
    "ScoredInParts",
    "WeightedSum",
    "answers_equal",
    "check_reward",
    "committed_answer",
    "extract_answer",
    "extract_document",
    "score",
    "signature_of",
    "word_bleu",
]
