"""What YAML holds becomes a value of the field's type, or an error that says which type is wanted."""

from typing import Any

import pytest

from duologue.errors import DuologueError
from duologue.values import checked_value


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [(float, "1e-5", 1e-5), (float, 2, 2.0), (int, 3, 3), (int | None, None, None), (dict[str, int], {}, {})],
)
def test_values_in_the_type_of_the_field(hint: Any, value: object, expected: object) -> None:
    made = checked_value(hint, value, "x")
    assert made == expected
    assert type(made) is type(expected)


@pytest.mark.parametrize(
    ("hint", "value", "wanted"),
    [(float, True, "float"), (float, "much", "float"), (int, None, "int"), (int | None, 1.5, "int or null")],
)
def test_another_type_is_an_error_with_the_wanted_one(hint: Any, value: object, wanted: str) -> None:
    with pytest.raises(DuologueError, match=f"^x is {value!r}. Give a value of type {wanted}.$"):
        checked_value(hint, value, "x")
