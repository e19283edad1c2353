"""Units: which words after a number are a unit, and when two units agree. Standard library only."""

import re

_ALIASES = {
    "kilometer": "km kms kilometer kilometers kilometre kilometres",
    "meter": "m meter meters metre metres",
    "centimeter": "cm centimeter centimeters centimetre centimetres",
    "millimeter": "mm millimeter millimeters millimetre millimetres",
    "mile": "mi mile miles",
    "foot": "ft foot feet",
    "inch": "in inch inches",
    "yard": "yd yds yard yards",
    "kilogram": "kg kgs kilo kilos kilogram kilograms",
    "gram": "g gram grams",
    "pound": "lb lbs pound pounds",
    "ounce": "oz ounce ounces",
    "liter": "l liter liters litre litres",
    "milliliter": "ml milliliter milliliters millilitre millilitres",
    "hour": "h hr hrs hour hours",
    "minute": "min mins minute minutes",
    "second": "s sec secs second seconds",
    "dollar": "§ usd dollar dollars buck bucks",
    "cent": "¢ cent cents",
    "euro": "€ eur euro euros",
    "sterling": "£ gbp",
    "degree": "deg degree degrees",
    "square": "sq square squared",
    "cubic": "cu cubic cubed",
    "person": "person people persons",
    "child": "child children",
    "man": "man men",
    "woman": "woman women",
}
_KNOWN = {word: unit for unit, words in _ALIASES.items() for word in words.split()}
_EXPONENT = {"2": "square", "²": "square", "3": "cubic", "³": "cubic"}
_TOKEN = re.compile(r"([a-zA-Z][a-zA-Z'-]*|[§€£¢])(?:\^?\{?([23²³])\}?)?$")
# Words that turn the number before them into another number, or are mathematics.
_NOT_UNITS_TEXT = """
    pi sin cos tan cot sec csc log ln exp sqrt mod and or to by plus minus over divided multiplied factorial power
    infinity not half halves third thirds fourth fourths fifth fifths sixth sixths seventh sevenths eighth eighths
    ninth ninths tenth tenths hundredth hundredths
"""
_NOT_UNITS = frozenset(_NOT_UNITS_TEXT.split())
SCALES = {
    "dozen": 12,
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}


def _singular(word: str) -> str:
    """Return the canonical unit word."""
    if word in _KNOWN:
        return _KNOWN[word]
    if len(word) > 4 and word.endswith(("shes", "ches", "xes", "sses")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def parse_unit(text: str, *, attached: bool = False) -> frozenset[str] | None:
    r"""Return the unit's words in canonical form, an empty set for no unit, None if the text is not a unit.

    Args:
        text: what follows (or, for a currency sign, precedes) a number, in plain notation.
        attached: the text follows the number without a blank: then only known units count, since ``3xy`` is algebra.
    """
    words: set[str] = set()
    for token in text.replace("/", " per ").replace("(", " ").replace(")", " ").lower().split():
        match = _TOKEN.fullmatch(token.rstrip(".,"))
        word = match.group(1) if match else ""
        if not word or word in _NOT_UNITS or (word not in _KNOWN and (attached or len(word) < 2)):
            return None
        words.add(_singular(word))
        if match and match.group(2):
            words.add(_EXPONENT[match.group(2)])
    return frozenset(words)


def units_agree(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return True if either unit is missing or says the same with fewer words; units are never converted."""
    small, large = sorted((one, other), key=len)
    return not small or (small <= large and not (large - small) & {"square", "cubic"})
