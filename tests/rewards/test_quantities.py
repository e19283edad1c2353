from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.rewards.notation import plain, strip_bold
from duologue.rewards.quantities import MAX_CHARS, parse_quantity, quick_equal
from duologue.rewards.units import parse_unit, units_agree

EQUAL = [
    ("12 apples", "12"),
    ("12", "12 apples"),
    ("1,200", "1200"),
    ("1{,}200", "1200"),
    (r"1,\!200", "1200"),
    ("$5", "5 dollars"),
    (r"\$5.50", "5.5"),
    ("$1,000 per month", "1000"),
    ("-$5", "-5"),
    ("5km", "5 kilometres"),
    ("5 red apples", "5 apples"),
    ("1/2", "0.5"),
    (r"\frac12", "0.5"),
    (r"$\dfrac{1}{2}$", "1/2"),
    (r"-\frac{1}{2}", "-.5"),
    (r"\frac{-1}{2}", "-0.5"),
    ("1 1/2", "1.5"),
    (r"1\frac{1}{2}", "3/2"),
    ("50%", "0.5"),
    ("50", r"50\%"),
    ("50 percent", "50 %"),
    ("\u22123", "-3"),
    ("negative 3", "-3"),
    ("about 3", "3"),
    ("7.0", "7"),
    ("5 million", "5,000,000"),
    ("1e3", "1000"),
    ("0.333333", "1/3"),
    (r"45^\circ", "45 degrees"),
    (r"5 \text{ cm}^2", "5 square centimeters"),
    ("x = 5", "5"),
    ("2 + 3 = 5", "5"),
    ("Monday", "monday."),
    ("the Monday", "Monday"),
    ("(A)", "A"),
    ("y=2x+1", "y = 2x + 1"),
    (r"2\pi", "2 pi"),
    (r"\text{Evelyn}", "Evelyn"),
]
DIFFERENT = [
    ("5 km", "5 miles"),
    ("5 cm", "5 cm^2"),
    ("50%", "5"),
    ("50%", "5000%"),
    ("5 million", "5"),
    ("0.33", "1/3"),
    ("1.000001", "1"),
    ("-3", "3"),
    ("Monday", "Tuesday"),
    ("five", "5"),
    ("", "5"),
    ("5", ""),
]
UNDECIDED = [("3x", "3"), ("3xy", "3"), ("2 pi", "2"), ("7 and 8", "7"), ("1/0", "2"), ("10,20", "1020"), ("a", "b")]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal(one: str, other: str) -> None:
    assert quick_equal(one, other) is True
    assert quick_equal(other, one) is True


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different(one: str, other: str) -> None:
    assert quick_equal(one, other) is False
    assert quick_equal(other, one) is False


@pytest.mark.parametrize(("one", "other"), UNDECIDED)
def test_left_to_algebra(one: str, other: str) -> None:
    assert quick_equal(one, other) is None
    assert quick_equal(other, one) is None


@given(st.fractions(max_denominator=10**6))
def test_a_fraction_equals_itself_in_every_notation(value: Fraction) -> None:
    top, bottom = value.numerator, value.denominator
    for text in (f"{top}/{bottom}", rf"\frac{{{top}}}{{{bottom}}}", rf"$\dfrac{{{top}}}{{{bottom}}}$"):
        quantity = parse_quantity(plain(text))
        assert quantity is not None
        assert quantity.value == value


@given(st.integers(), st.integers())
def test_integers_are_equal_only_to_themselves(one: int, other: int) -> None:
    assert quick_equal(f"{one:,}", str(other)) is (one == other)


@given(st.decimals(-(10**6), 10**6, places=3), st.sampled_from(["", " km", " dollars", "%"]))
def test_decimals_are_read_exactly(value: object, suffix: str) -> None:
    quantity = parse_quantity(plain(f"{value}{suffix}"))
    assert quantity is not None
    assert quantity.value == Fraction(str(value))


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_is_handled(one: str, other: str) -> None:
    assert quick_equal(one, other) in (True, False, None)
    assert quick_equal(one, other) == quick_equal(other, one)


def test_huge_answers_are_compared_as_strings() -> None:
    long = "1" * (MAX_CHARS + 1)
    assert quick_equal(long, long) is True
    assert quick_equal(long, long + "1") is False
    assert quick_equal("1e99999999", "1") is None


def test_bold_goes_and_powers_stay() -> None:
    assert strip_bold("**Answer:** **5** and 2**3") == "Answer: 5 and 2**3"


def test_units() -> None:
    assert parse_unit("miles per hour") == parse_unit("mi/h") == frozenset({"mile", "per", "hour"})
    assert parse_unit("") == frozenset()
    assert parse_unit("x", attached=True) is None
    assert parse_unit("sin") is None
    assert units_agree(frozenset(), frozenset({"mile"}))
    assert not units_agree(frozenset({"mile"}), frozenset({"hour"}))
