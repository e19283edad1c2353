"""Numbers with units, compared exactly by fractions: the common case, decided without a computer-algebra system."""

import re
from dataclasses import dataclass
from fractions import Fraction

from duologue.rewards.notation import plain
from duologue.rewards.units import SCALES, parse_unit, units_agree

MAX_CHARS = 500
"""Longer answers are compared as strings alone."""
_ROUNDED_PLACES = 6

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
_PATTERN = re.compile(
    rf"""(?P<sign>[-+]|(?:negative|minus)\s)?\s*(?P<currency>[§€£])?\s*(?P<inner>-)?
    (?: (?:(?P<whole>\d+)\s*)?\\frac\s*\{{\s*(?P<top>-?\d+)\s*\}}\s*\{{\s*(?P<bottom>\d+)\s*\}}
      | (?:(?P<whole2>\d+)\s+)?(?P<top2>{_NUMBER})\s*/\s*(?P<bottom2>{_NUMBER})
      | (?P<number>{_NUMBER})(?:e(?P<exponent>[-+]?\d{{1,2}})(?![\w.]))? )
    (?P<percent>%)?(?P<rest>.*)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_LEFT_SIDE = re.compile(r"^[^=<>!≤≥,;]*(?:=[^=<>!≤≥,;]*)*=\s*(?=[^=,;]+$)")
_WORDS = re.compile(r"[a-z][a-z'\- ]*")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as written, with its unit."""

    value: Fraction
    """The number; that before the sign where ``percent`` is set."""
    places: int = 0
    """Digits after the decimal point."""
    percent: bool = False
    unit: frozenset[str] = frozenset()


def _fraction(text: str) -> Fraction:
    """Return the exact value of a plain number with or without thousands separators."""
    return Fraction(text.replace(",", ""))


def _value(match: re.Match[str]) -> Fraction:
    """Return the unsigned value of a number match.

    Raises:
        ZeroDivisionError: if a denominator is 0.
    """
    part = match.groupdict()
    if part["number"]:
        return _fraction(part["number"]) * Fraction(10) ** int(part["exponent"] or 0)
    top, bottom = part["top"] or part["top2"], part["bottom"] or part["bottom2"]
    return Fraction(part["whole"] or part["whole2"] or 0) + _fraction(top) / _fraction(bottom)


def _scale(rest: str) -> tuple[int, str]:
    """Split a leading "million" and the like off a unit."""
    head, _, tail = rest.strip().partition(" ")
    factor = SCALES.get(head.lower())
    return (factor, tail) if factor else (1, rest)


def parse_quantity(answer: str) -> Quantity | None:
    r"""Read a number with an optional currency sign, percent sign and unit; None if the answer is anything else.

    Args:
        answer: in plain notation (``notation.plain``): ``1,200``, ``-3.5 km``, ``\frac{1}{2}``, ``1 1/2``, ``§4``.
    """
    match = _PATTERN.fullmatch(answer) if len(answer) <= MAX_CHARS else None
    if not match:
        return None
    scale, rest = _scale(match["rest"])
    unit = parse_unit(rest, attached=bool(rest) and not rest[0].isspace() and scale == 1)
    try:
        value = _value(match) * scale
    except (ValueError, ZeroDivisionError):
        return None
    if unit is None or (match["sign"] and match["inner"]):
        return None
    negative = match["inner"] or (match["sign"] or "+").strip() != "+"
    places = len((match["number"] or "").partition(".")[2])
    money = parse_unit(match["currency"] or "") or frozenset()
    return Quantity(-value if negative else value, places, bool(match["percent"]), unit | money)


def _rounds_to(rough: Quantity, exact: Fraction) -> bool:
    """Return True if ``rough`` is ``exact`` rounded to the six or more places that it shows."""
    return rough.places >= _ROUNDED_PLACES and round(exact, rough.places) == rough.value


def _values_equal(one: Quantity, other: Quantity) -> bool:
    """Compare values; a percentage equals its number and a hundredth of it, unless both are percentages."""
    if one.value == other.value or _rounds_to(one, other.value) or _rounds_to(other, one.value):
        return True
    if one.percent == other.percent:
        return False
    percent, bare = (one, other) if one.percent else (other, one)
    return percent.value / 100 == bare.value


def _key(text: str) -> str:
    """Return a string in which layout, case, an article and the brackets of a choice letter do not show."""
    text = re.sub(r"^(?:the|an?)\s+(?=\w{3})", "", text.lower())
    text = re.sub(r"^\(([a-z])\)$", r"\1", text)
    return text if _WORDS.fullmatch(text) else re.sub(r"\s+|(?<=\d),(?=\d{3}(?!\d))", "", text)


def _letters_only(text: str) -> bool:
    """Return True for words, which no rational number and no other words can equal."""
    return bool(_WORDS.fullmatch(text)) and len(text) >= 3


def quick_equal(given: str, gold: str) -> bool | None:
    """Compare two answers without computer algebra; None if that cannot decide.

    Args:
        given: the answer to judge, as written.
        gold: the reference, as written.
    """
    return quick_equal_plain(plain(given), plain(gold))


def drop_left_side(given: str, gold: str) -> tuple[str, str]:
    """Where one answer alone is an equation (``x = 5``), keep what stands right of its last ``=``."""
    if ("=" in given) == ("=" in gold):
        return given, gold
    return _LEFT_SIDE.sub("", given), _LEFT_SIDE.sub("", gold)


def quick_equal_plain(given: str, gold: str) -> bool | None:
    """Compare two answers in plain notation without computer algebra; None if that cannot decide."""
    if not given or not gold:
        return False
    if max(len(given), len(gold)) > MAX_CHARS:
        return given == gold
    given, gold = drop_left_side(given, gold)
    if given == gold or _key(given) == _key(gold):
        return True
    one, other = parse_quantity(given), parse_quantity(gold)
    if one and other:
        return _values_equal(one, other) and units_agree(one.unit, other.unit)
    if all(q or _letters_only(t.lower()) for q, t in ((one, given), (other, gold))):
        return False
    return None
