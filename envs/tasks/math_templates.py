"""The problems that ``MathTasks`` can pose: wording, ranges of numbers and the steps to the answer.

A template's numbers are called a, b, c, d, e and each fact holds exactly one of them. A step is ``left op right``;
an operand is a number's letter, ``s1``, ``s2``, … for the result of an earlier step, or a constant; the last result is
the answer. Every result must be positive and whole (the last one may be a fraction where ``fraction`` is set).
"""

from dataclasses import dataclass

NAMES = (
    "Tom",
    "Ann",
    "Ben",
    "Mia",
    "Sam",
    "Eva",
    "Max",
    "Lily",
    "Leo",
    "Zoe",
    "Dan",
    "Amy",
    "Jack",
    "Ella",
    "Luke",
    "Nora",
    "Adam",
    "Ruby",
    "Omar",
    "Ines",
    "Hugo",
    "Tara",
    "Ivan",
    "Maya",
)
ITEMS = (
    "marbles",
    "books",
    "apples",
    "coins",
    "cards",
    "pens",
    "stickers",
    "shells",
    "stamps",
    "cookies",
    "balls",
    "cups",
    "toys",
    "keys",
    "hats",
    "eggs",
)
LETTERS = (("a", "b"), ("x", "y"), ("p", "q"), ("m", "n"))


@dataclass(frozen=True, slots=True)
class Template:
    """One kind of problem."""

    kind: str
    """Unique name."""
    level: int
    """1 (easiest) to 5."""
    question: str
    """What the user asks at first; holds no number."""
    facts: tuple[str, ...]
    """What the user holds back, one number each; ``{n1}`` and ``{n2}`` are names, ``{u}`` and ``{v}`` letters."""
    numbers: tuple[range, ...]
    """Allowed values of a, b, c, …; none includes 1, so that every noun is a plural."""
    steps: tuple[str, ...]
    """The way to the answer."""
    largest: int = 100_000
    """Upper limit of the answer."""
    fraction: bool = False
    """True if the answer may be a fraction."""


_DIGIT = range(2, 10)
_SMALL = range(2, 21)
_TENS = range(10, 100)


def _sum(kind: str, question: str, *facts: str) -> Template:
    return Template(kind, 1, question, facts, (_DIGIT, _DIGIT), ("a + b",))


def _difference(kind: str, question: str, *facts: str) -> Template:
    return Template(kind, 2, question, facts, (_SMALL, _SMALL), ("a - b",))


def _bare(word: str, sign: str, level: int, *numbers: range) -> Template:
    question = f"What is {{u}} {word} {{v}}?"
    return Template(f"bare-{word}-{level}", level, question, ("{u} is {a}.", "{v} is {b}."), numbers, (f"a {sign} b",))


_LEVEL_1 = (
    _sum(
        "gain",
        "How many {items} does {n1} have now?",
        "{n1} starts with {a} {items}.",
        "{n1} gets {b} more {items}.",
    ),
    _sum(
        "together",
        "How many {items} do {n1} and {n2} have together?",
        "{n1} has {a} {items}.",
        "{n2} has {b} {items}.",
    ),
    _sum(
        "places",
        "How many {items} does {n1} have in all?",
        "{n1} has {a} {items} at home.",
        "{n1} has {b} {items} at school.",
    ),
    _sum(
        "containers",
        "How many {items} are there in all?",
        "There are {a} {items} in the box.",
        "There are {b} {items} in the bag.",
    ),
    _sum(
        "days",
        "How many {items} did {n1} buy in all?",
        "{n1} bought {a} {items} on Monday.",
        "{n1} bought {b} {items} on Friday.",
    ),
    _sum(
        "colors",
        "How many red and blue {items} does {n1} have?",
        "{n1} has {a} red {items}.",
        "{n1} has {b} blue {items}.",
    ),
    _bare("plus", "+", 1, _DIGIT, _DIGIT),
)

_LEVEL_2 = (
    Template(
        "boxes",
        2,
        "How many {items} does {n1} have in all?",
        ("{n1} has {a} boxes of {items}.", "Each box holds {b} {items}."),
        (range(3, 20), range(3, 30)),
        ("a * b",),
    ),
    Template(
        "buy-and-give",
        2,
        "How many {items} does {n1} have now?",
        ("{n1} starts with {a} {items}.", "{n1} buys {b} more {items}.", "{n1} gives {c} {items} to {n2}."),
        (_TENS, _TENS, _TENS),
        ("a + b", "s1 - c"),
    ),
    Template(
        "goal",
        2,
        "How many {items} must {n1} still sell to reach the goal?",
        ("The goal is to sell {a} {items}.", "{n1} has sold {b} {items} so far."),
        (range(100, 500), range(20, 400)),
        ("a - b",),
    ),
    Template(
        "share",
        2,
        "How many {items} does each friend get?",
        ("{n1} shares out {a} {items} equally.", "{b} friends get the {items}."),
        (range(12, 200), range(3, 13)),
        ("a / b",),
    ),
    _difference(
        "loss",
        "How many {items} does {n1} have left?",
        "{n1} starts with {a} {items}.",
        "{n1} loses {b} {items}.",
    ),
    _difference(
        "difference",
        "How many more {items} does {n1} have than {n2}?",
        "{n1} has {a} {items}.",
        "{n2} has {b} {items}.",
    ),
    _bare("minus", "-", 2, _SMALL, _SMALL),
    _bare("times", "*", 2, range(3, 20), range(3, 30)),
    _bare("plus", "+", 2, range(20, 400), range(20, 400)),
)

_LEVEL_3 = (
    Template(
        "boxes-and-loose",
        3,
        "How many {items} does {n1} have in all?",
        ("{n1} has {a} full boxes of {items}.", "Each box holds {b} {items}.", "{n1} also has {c} loose {items}."),
        (range(3, 20), range(4, 30), range(2, 60)),
        ("a * b", "s1 + c"),
    ),
    Template(
        "change",
        3,
        "How many dollars does {n1} have left after shopping?",
        ("{n1} takes {a} dollars to the shop.", "{n1} buys {b} {items}.", "The {items} cost {c} dollars each."),
        (range(50, 300), range(3, 15), range(2, 20)),
        ("b * c", "a - s1"),
    ),
    Template(
        "share-the-rest",
        3,
        "How many {items} does each friend get?",
        ("{n1} has {a} {items} at first.", "{n1} keeps {b} {items}.", "{c} friends share the rest equally."),
        (range(20, 200), range(2, 40), range(3, 10)),
        ("a - b", "s1 / c"),
    ),
    Template(
        "reading",
        3,
        "How many days does {n1} need to finish the book?",
        ("The book has {a} pages.", "{n1} has already read {b} pages.", "{n1} reads {c} pages every day."),
        (range(80, 400), range(10, 80), range(5, 30)),
        ("a - b", "s1 / c"),
    ),
    Template(
        "wages",
        3,
        "How many dollars does {n1} earn this week?",
        ("{n1} works {a} hours a day.", "{n1} works {b} days this week.", "{n1} earns {c} dollars an hour."),
        (range(2, 10), range(2, 8), range(8, 40)),
        ("a * b", "s1 * c"),
    ),
)

_LEVEL_4 = (
    Template(
        "discount",
        4,
        "How many dollars does {n1} pay for the order?",
        (
            "{n1} orders {a} {items}.",
            "The {items} cost {b} dollars each.",
            "The shop takes {c} percent off that price.",
            "Shipping adds {d} dollars at the end.",
        ),
        (range(2, 21), range(5, 41, 5), range(10, 60, 5), range(2, 16)),
        ("a * b", "100 - c", "s1 * s2", "s3 / 100", "s4 + d"),
    ),
    Template(
        "part-given",
        4,
        "How many {items} does {n1} have in the end?",
        (
            "{n1} starts with {a} {items}.",
            "{n1} first gives 1/{b} of them to {n2}.",
            "{n1} then loses {c} {items}.",
            "After that {n1} finds {d} {items}.",
        ),
        (range(24, 150), range(2, 9), range(2, 15), range(2, 15)),
        ("a / b", "a - s1", "s2 - c", "s3 + d"),
    ),
    Template(
        "bus",
        4,
        "How many students take the bus to school?",
        (
            "The school has {a} classes.",
            "There are {b} students in each class.",
            "{c} percent of all students walk to school.",
            "{d} students ride a bike, all others take the bus.",
        ),
        (range(4, 25), range(15, 31, 5), range(10, 70, 10), range(5, 60)),
        ("a * b", "100 - c", "s1 * s2", "s3 / 100", "s4 - d"),
    ),
    Template(
        "red-part",
        4,
        "What fraction of the {items} that {n1} has are red?",
        (
            "{n1} has {a} red {items}.",
            "{n1} has {b} blue {items}.",
            "{n1} has {c} green {items}.",
            "The other {d} {items} are white.",
        ),
        (range(2, 13), range(2, 13), range(2, 13), range(2, 13)),
        ("b + c", "s1 + d", "a + s2", "a / s3"),
        fraction=True,
    ),
    Template(
        "percent-sold",
        4,
        "What percent of the {items} has {n1} sold?",
        (
            "{n1} made {a} {items} on Monday.",
            "{n1} made {b} {items} on Tuesday.",
            "{n1} sold {c} {items} on Wednesday.",
            "{n1} sold {d} {items} on Thursday.",
        ),
        (range(10, 110, 10), range(10, 110, 10), range(2, 60, 2), range(2, 60, 2)),
        ("a + b", "c + d", "s2 * 100", "s3 / s1"),
        100,
    ),
)

_LEVEL_5 = (
    Template(
        "machine",
        5,
        "How many good {items} are still to be sold?",
        (
            "A machine makes {a} {items} an hour.",
            "It runs {b} hours a day.",
            "It ran for {c} days.",
            "{d} of the {items} are broken.",
            "{e} good {items} are sold already.",
        ),
        (range(12, 60), range(3, 13), range(2, 8), range(5, 60), range(20, 300)),
        ("a * b", "s1 * c", "s2 - d", "s3 - e"),
    ),
    Template(
        "trip",
        5,
        "How many dollars does the whole trip cost?",
        (
            "{a} people go on the trip.",
            "One train ticket costs {b} dollars.",
            "The house costs {c} dollars a night for everyone.",
            "They stay for {d} nights.",
            "A voucher takes {e} dollars off the total.",
        ),
        (range(3, 15), range(12, 90), range(60, 250), range(2, 9), range(10, 100)),
        ("a * b", "c * d", "s1 + s2", "s3 - e"),
    ),
    Template(
        "drive",
        5,
        "How many hours does {n1} need for the whole trip?",
        (
            "The first part is {a} kilometers long.",
            "{n1} drives {b} kilometers an hour there.",
            "The second part is {c} kilometers long.",
            "{n1} drives {d} kilometers an hour on it.",
            "{n1} rests for {e} hours on the way.",
        ),
        (range(80, 500, 20), range(20, 101, 10), range(80, 500, 20), range(20, 101, 10), range(2, 6)),
        ("a / b", "c / d", "s1 + s2", "s3 + e"),
    ),
    Template(
        "saving",
        5,
        "How many weeks must {n1} save to buy the bike?",
        (
            "The bike costs {a} dollars.",
            "{n1} already has {b} dollars.",
            "{n1} earns {c} dollars a week.",
            "{n1} spends {d} dollars a week.",
        ),
        (range(150, 800, 10), range(20, 150, 10), range(20, 90, 5), range(5, 60, 5)),
        ("a - b", "c - d", "s1 / s2"),
    ),
    Template(
        "bakery",
        5,
        "How many dollars does the bakery take in today?",
        (
            "The bakery fills {a} trays with rolls.",
            "Each tray holds {b} rolls.",
            "{c} percent of the rolls are not sold.",
            "{d} rolls are given away for free, the rest is paid for.",
            "One roll costs {e} dollars.",
        ),
        (range(4, 20), range(10, 50, 5), range(10, 60, 10), range(2, 12), range(2, 5)),
        ("a * b", "100 - c", "s1 * s2", "s3 / 100", "s4 - d", "s5 * e"),
    ),
)

TEMPLATES: tuple[tuple[Template, ...], ...] = (_LEVEL_1, _LEVEL_2, _LEVEL_3, _LEVEL_4, _LEVEL_5)
"""``TEMPLATES[level - 1]``."""
