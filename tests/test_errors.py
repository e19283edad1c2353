from duologue.errors import did_you_mean


def test_the_nearest_name_is_offered() -> None:
    assert did_you_mean("scriptd", ["scripted", "human"]) == "Did you mean 'scripted'?"


def test_a_part_of_a_name_is_near_enough() -> None:
    assert did_you_mean("id", ["task_id", "reference"]) == "Did you mean 'task_id'?"


def test_all_names_are_listed_when_none_is_near() -> None:
    assert did_you_mean("zebra", ["b", "a"]) == "Choose one of: 'a', 'b'."
