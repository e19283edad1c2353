"""Learners on logged and on their own contexts."""

import numpy as np
import pytest

from duologue.analysis.theory import Pairing, contexts, expected_return, learned
from duologue.analysis.theory.learning import ARMS, LOST, OWN, REPLIES, SLIPS, TOPICS, learn, topics_dialogue


def small(seed: int, horizon: int = 4) -> Pairing:
    dialogue = topics_dialogue(horizon, np.random.default_rng(seed))
    return Pairing(dialogue, dialogue.rewards[0])


def test_one_reply_is_right_in_every_state() -> None:
    ideal = small(0)
    assert ideal.dialogue.rewards.shape == (4, TOPICS + LOST, REPLIES)
    assert (ideal.dialogue.rewards.sum(axis=-1) == 1).all()
    assert float(expected_return(ideal)) == pytest.approx(4.0)
    assert contexts(ideal)[:, TOPICS:].max() == 0  # who never errs never sees a state of loss


def test_a_learner_knows_what_it_tried_and_nothing_else() -> None:
    """Rows are uniform over what is still possible, and the right reply always is."""
    ideal = small(1)
    policy = learn(ideal.dialogue, 300, 0.0, np.random.default_rng(2))
    right = ideal.dialogue.rewards[0].astype(bool)
    assert (policy[right] > 0).all()
    for row in policy:
        assert set(row[row > 0]) == {row.max()}
        assert row.sum() == pytest.approx(1.0)
    assert policy[TOPICS:].max() == 1 / REPLIES  # flawless logs never go there
    assert policy[0].max() == 1.0  # the commonest topic


def test_own_contexts_teach_what_to_do_when_lost() -> None:
    ideal = small(1, horizon=16)
    made = [learn(ideal.dialogue, 2_000, slips, np.random.default_rng(3)) for slips in (None, 0.0, 0.2)]
    known = [int((policy[TOPICS:].max(axis=-1) > 1 / REPLIES).sum()) for policy in made]
    assert known[1] == 0
    assert known[0] > 25
    assert known[2] > 25  # so do logs of an assistant who errs often


def test_without_contexts_nothing_is_learned() -> None:
    policy = learn(small(0).dialogue, 0, None, np.random.default_rng(0))
    assert (policy == 1 / REPLIES).all()


def test_what_is_lost_is_worked_out() -> None:
    """Gap and bound of a learner that knows nothing: every reply is right with probability 1/16."""
    made = learned(3, OWN, 0, contexts=0)
    assert made.gap == pytest.approx(3 * 15 / 16)
    assert made.final_gap == pytest.approx(15 / 16)
    assert made.error == pytest.approx(15 / 16)
    assert made.bound == pytest.approx((3 + 2 + 1) * 15 / 16)


@pytest.mark.parametrize("arm", ARMS)
def test_a_seed_reproduces_a_learner(arm: str) -> None:
    assert learned(4, arm, 5, contexts=200) == learned(4, arm, 5, contexts=200)
    assert learned(4, arm, 5, contexts=200) != learned(4, arm, 6, contexts=200)


def test_logged_contexts_lose_more_where_dialogues_are_long() -> None:
    """Of four seeds each, every static learner loses more than every on-policy one, though it errs less on the log."""
    made = {arm: [learned(32, arm, seed) for seed in range(4)] for arm in ARMS}
    for arm in SLIPS:
        assert min(one.gap for one in made[arm]) > max(one.gap for one in made[OWN])
        assert np.mean([one.error for one in made[arm]]) < np.mean([one.error for one in made[OWN]])
    for one in (one for row in made.values() for one in row):
        assert one.gap <= one.bound
        assert one.final_gap <= min(1.0, 32 * one.error)
