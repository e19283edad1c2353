"""Plain notation: answers as people and models write them, brought to one form. Standard library only."""

import re

_REWRITES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), to)
    for pattern, to in (
        (r"[\u2212\u2013\u2014\ufe63\uff0d]", "-"),
        ("[\u00a0\u202f\u2009]", " "),
        (r"\\(?:text|textbf|textit|mathrm|mathbf|mbox|operatorname)\s*\{([^{}]*)\}", r" \1 "),
        (r"\\(?:left|right|displaystyle)(?![a-zA-Z])", ""),
        (r"\\!|\{,\}", ","),
        (r",,+", ","),
        (r"\\[,;: ]|~|\\quad(?![a-zA-Z])", " "),
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\\frac\s*(\d)\s*(\d)(?!\d)", r"\\frac{\1}{\2}"),
        (r"\^\s*(?:\\circ|\{\s*\\circ\s*\})|°", " degrees "),
        (r"\\%|\s+per\s?cent\b|\s+%", "%"),
        (r"\\\(|\\\)|\\\[|\\\]|\$\$", " "),
        (r"\*\*", "^"),
        (r"\s+\^", "^"),
        ("∞", r"\\infty "),
        (r"√\s*(\d+|\w)", r"\\sqrt{\1}"),
        (r"\u03c0|(?<![a-zA-Z\\])pi(?![a-zA-Z])", r"\\pi "),
    )
)
_BOLD = re.compile(r"(?<![\w)])\*\*|\*\*(?![\w(])|__(?=\W|$)|(?<!\w)__")
_FILLER = re.compile(
    r"^(?:(?:is|about|approximately|roughly|exactly|only|around|just|equals?|equal to|a total of)\s+"
    r"|\\approx\s*|≈\s*|:\s*)+",
    re.IGNORECASE,
)


def strip_bold(text: str) -> str:
    """Drop Markdown bold markers; a power such as ``2**3`` stays."""
    return _BOLD.sub("", text)


def _unwrap(text: str) -> str:
    r"""Drop one pair of ``$`` around or inside the text; ``\$`` and a lone ``$`` are money and become ``§``."""
    text = text.replace("\\$", "§")
    if text.count("$") == 2 and not re.search(r"\$\s*\d[\d.,]*\s[^$]*\$\s*\d", text):
        return text.replace("$", " ")
    return text.replace("$", "§")


def plain(answer: str) -> str:
    r"""Return an answer in plain notation.

    Unicode signs become ASCII; LaTeX wrappers and spacing go; ``\%`` and the word percent become ``%``; money is
    marked by ``§``; a trailing full stop and words such as "about" go.

    Args:
        answer: one answer, without its sentence.
    """
    text = _unwrap(" ".join(strip_bold(answer).split()).strip("`"))
    for pattern, to in _REWRITES:
        text = pattern.sub(to, text)
    text = " ".join(text.split())
    return _FILLER.sub("", text.rstrip(".,;: ")).strip()
