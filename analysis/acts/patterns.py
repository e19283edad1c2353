"""Words of asking, changing and telling, by which acts are told: regular expressions, each for one sentence."""

from __future__ import annotations

import re


def any_of(*alternatives: str) -> re.Pattern[str]:
    """Return one pattern that matches what any alternative matches, in either case."""
    return re.compile("|".join(f"(?:{one})" for one in alternatives), re.IGNORECASE)


_LEAD = (
    r"^\W*(?:(?:ok|okay|yes|yeah|no|and|but|so|also|then|now|next|first|lastly|finally|maybe|perhaps|just|actually|well"
    r"|great|hi|hello|hey|please|pls|let's see"
    r"|thanks|again|still|hm+|oh|to start|instead|overall|in addition)\b[\s,.!:;-]*)*"
)
_VERBS = (
    "add|advise|adjust|answer|calculate|change|check|clarify|combine|come up|compare|compute|condense|continue|convert"
    "|correct|create|cut|define|delete|describe|discuss|do|draft|drop|edit|elaborate|emphasi[sz]e|end|expand|explain"
    "|fill|find|finish|fix|focus|format|gear|generate|get rid|give|go (?:ahead|back|on|over)|help|highlight"
    "|improve|include|incorporate|insert|keep|leave|let me (?:know|see)|let's (?!say)|lets|list|make"
    "|mention|merge|move|name|provide|prove|put|reduce|redo|remove|rephrase|replace|restate|revise|rewrite|say|share|shorten|show|simplify|solve"
    "|speak|split|start|state|suggest|summari[sz]e|swap|switch|take|talk|teach|tell|tie|touch|translate|trim|try|turn"
    "|update|use|utili[sz]e|walk me|work|write|be (?:sure|more|less)|don't|do not|stop|continue"
)
_MODAL = r"(?:can|could|would|will|shall|should|may|might)"

_AUXILIARY = (
    "is|are|was|were|am|isn't|aren't|wasn't|do|does|did|don't|doesn't|didn't|have|has|had|haven't|hasn't|can|could|can't"
    "|couldn't|would|wouldn't|will|won't|shall|should|shouldn't|may|might|must"
)
_ASIDE = r"(?:really |also |just |still |definitely |actually |only |think (?:i |we )?)*"
QUESTION_FORM = any_of(
    _LEAD + r"(?:(?:in|for|of|to|at|by|from|on) )?(?:what|which|who|whom|whose|when|where|why|how)\b",
    _LEAD + r"(?:" + _AUXILIARY + r")\s+\w+",
    (
        r"(?:[,:;]|\bso\b|\bbut\b|\band\b)\s*(?:so |then |and |or |but )*(?:what|which|why|how|where|when"
        r"|is|are|does|do|did|can|could|would|will|should)\s[^,]*$"
    ),
    r"\b(?:right|correct|yes|no|agree)\s*\?+$",
)
"""Has the form of a question."""
OPEN_QUESTION = any_of(
    (
        _LEAD + r"(?:what (?:is|are|was|does|do|did|'s|should|would)|what's|which|why|how (?:do|would|should|can"
        r"|could|did|is|are|many|much|about|to)|where (?:do|would|should))\b"
    ),
    _LEAD + r"(?:" + _AUXILIARY + r")\s+(?:i|you|we|it|they|this|that|these|there|the|my|your)\b",
)
"""Begins so clearly like a question that it is one without a question mark too."""
VERB_FIRST = any_of(
    _LEAD + r"(?:" + _VERBS + r")\b(?!\s*[=:+\-*/]|\s*\?$|\s+(?:not|n't)\b)",
)
"""Begins with an order, or, where a question was put, with the step that answers it."""
REQUEST = any_of(
    r"\b" + _MODAL + r" (?:you|we|u)\b",
    r"\bcan better\b",
    (
        r"\b(?:i|we)(?:'d| would| will|'ll| am going to|'m going to)? "
        + _ASIDE
        + r"(?:need|like|love|prefer|want|wish)(?: you| your| some| more| a| an| the| any| to (?:know|see|do"
        r"|get|hear|understand|learn|solve|have|write|make|create|add|include))\b"
    ),
    r"\b(?:i|we) " + _ASIDE + r"need (?!to\b)",
    r"\bi hope to\b",
    r"\bneed (?:some |your |more )?help\b",
    r"\bi(?:'d| would) " + _ASIDE + r"like\b",
    r"\bhelp me\b",
    r"\bmake sure\b",
    r"\bplease (?!d)\w+",
    r",? please\W*$",
    r"^\W*(?:next|go on|continue|again|more|hint|solution|answer|example)(?: (?:step|one|problem|please))*\W*$",
    r"\b(?:you're|you are) going to\b",
)
"""Wants something done."""
WISH_FOR_TEXT = any_of(
    r"\b(?:i|we)(?:'d| would|'ll| will)? " + _ASIDE + r"(?:want|need|hope) to \w+",
    r"\b(?:it|this|that|the \w+|we|you|he|she|they) (?:really |also )?should (?!be from)\w+",
    r"\bneeds? to be\b",
    r"\bhow about\b",
    r"\bwhat about\b",
    r"\bmaybe (?:" + _VERBS + r"|have)\b",
    r"[,;:] (?:please |so )?(?:" + _VERBS + r"|flesh) (?:it|this|that)\b",
)
"""Wants something of a text."""
CHANGE = any_of(
    (
        r"\b(?:add(?:ed|ing)?|adjust|advise|change|condense|cut|delete|drop|edit|emphasi[sz]e|expand|fill"
        r"|fix|focus|gear|geared|highlight|improve|include|including|incorporate|insert|keep|make (?:it"
        r"|this|that|the|sure|him|her|them)|mention|merge|blend|move|omit|put|reduce|remove|rephrase"
        r"|replace|revise|reword|rewrite|say|shorten|simplify|swap|switch|take out|tell (?:them|him|her|the"
        r"|how)|talk about|tone|trim|update|utili[sz]e|work in|longer|shorter|less than|more detail"
        r"|more details|be sure|get rid|leave out|use|set|have (?:him|her|them|the|it|\w+ \w+ to)|bring in"
        r"|redo|turn)\b"
    ),
    r"\bhow about\b",
    r"\b(?:it|this|that|the \w+|he|she|they|we) (?:really )?should\b",
    r"\bi(?:'d| would) (?:really )?like\b",
    r"\bneeds? to be\b",
    r"\bgive (?:an|some|more)\b",
    r"\bexplain\b",
    r"\bprovide\b",
)
"""Names a change of a text; counts where a text was drafted."""
NEW_PIECE = any_of(
    r"\b(?:next|lastly|another|new) (?:i|we|story|post|e-?mail|letter|poem|question|problem)\b",
    r"\bnext,? i want\b",
    r"\blastly\b",
    r"^\W*(?:what|why|who|when|where|is|are|do|does)\b",
    r"\b(?:any|some|other|more|what) (?:\w+ )?(?:ideas|suggestions|tips)\b",
    r"\btips that\b",
    r"\bwhat (?:else|are)\b",
)
"""Asks for something of its own instead of a change."""
SHOULD_BE = any_of(
    r"\b(?:it|that|this|answer|result|\w+) (?:should|ought to) (?:have )?be(?:en)?\b(?!.*\?)",
    r"\d\s*,?\s*(?:and )?not\s+(?:\w+\s+)?\d",
    r"\bonly (?:one|\d+)\b.*\bnot\b",
    r"\binstead of\b",
    r"\b(?:would|'d) have (?:preferred|liked)\b",
    r"\bplease (?:do not|don't)\b",
    r"\bstop (?:\w+ing|being)\b",
    r"\b(?:shorter|simpler|smaller|slower) (?:answers?|words|steps|terms|language)\b",
    r"\bone (?:step|thing) at a time\b",
)
"""Says how an answer, or the way of answering, should be instead."""
PREMISE = any_of(
    r"(?:^|[.:\x22])\W*(?:let(?! us)|assume|suppose|define|denote|given|consider)\b(?!'s| me)",
)
"""States a premise of a problem."""
_FORM = """
article blog create draft email essay help letter like make note paragraph piece please post short story want word write
yes no not ok okay right wrong correct incorrect true sure don't doesn't didn't isn't wasn't can't couldn't won't good
"""
FORM_WORDS = frozenset(_FORM.split())
"""What wishes for a text and reactions say whatever they are about."""
CHECK = any_of(
    r"\b(?:make|makes|making) sense\b",
    r"\bdo you (?:understand|see|follow|agree|want|need|have any (?:other |more |further )?questions)\b",
    r"\bwould you (?:like|prefer)\b",
    r"\b(?:shall|should) (?:i|we)\b",
    r"\bany (?:other )?questions\b",
    r"\bready\b",
    r"\bwant me to\b",
    r"\blet me know\b",
    r"\bdoes (?:this|that) help\b",
    r"\bis (?:this|that|it) (?:ok|okay|clear|better|what)\b",
    r"\bfeel free\b",
    r"\bclear\b",
    r"\bhow does (?:that|this) sound\b",
)
"""A question after understanding, or an offer."""
OWN_STEP = any_of(
    (
        _LEAD + r"(?:is|was|isn't|would|wouldn't|could|should|do|does|am|are|aren't|did|must|will) (?:(?!that the"
        r"|it the|it all|that all|that right|it right|my original)(?:i|it|that|my|we|x|n|the answer"
        r"|the next step|the first step))\b(?! (?:mean|possible|still|also|help|hold|even))"
    ),
    r"\b(?:would|should|could) (?:it|that|x|the answer|i|we) be\b",
    r"\bdo you mean (?:like|that|i|we)\b",
    r"\bis that it\b",
    r"\bwhat about\b",
    r"\b(?:i|we) (?:think|thought|feel like|guess|got|get|know)\b",
    r"\bthe answer\b.* (?:is|be)\b",
    r"\bcorrect\W*\?+$",
    r"\bmust be\b",
    r"\bwe missing\b",
)
"""Brings a step of one's own into a question."""
BROUGHT = any_of(
    (
        r"\b(?:add(?:ed|ing)?|mention(?:ed|ing)?|say(?:ing|s)?|include[sd]?|including|state|tell|explain"
        r"|indicat\w+|emphasi[sz]e|show|know|writ\w+|idea|fact|advise|note|section|paragraph|convey"
        r"|stress)\b[^.?!]{0,60}?\b(?:that|how (?:i|we|my|our|much|important|a)|because|since|so|as one)\b"
    ),
    (
        r"\b(?:my|our|his|her|their) (?:\w+ ){0,2}(?:name|son|daughter|husband|wife|friend|title|position"
        r"|number|boss|sister|brother|mother|father|house|job)\b"
    ),
    r"\b(?:as|to|by|at|on|is|was|named|called) (?:my )?[\"\u201c]?(?:\d[\d/.,%]*)(?![\d/.,%]*\W+(?:\w+ )?words?\b)",
    r"\b(?:advise|say|mention) (?:to|the|it)\b",
    r"\bbecause\b",
    r"\bhow about \w+ (?:\w+ )?(?:doesn|don|does|is|was|has|had)",
    r"\bsuch as\b",
)
"""A request that brings the point itself."""
OPTION = any_of(
    r"\b(?:option|tips?|number|suggestions?|choice|version|idea)s? (?:\d|[a-d]\b|one|two|three)",
    r"\bthe (?:second|third|latter|former) (?:one|option|version)\b",
    r"\b(?:both|all) of (?:them|those|these)\b",
)
"""Takes up one of the other's options."""
NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+")
"""A name inside a sentence."""
YES_OR_NO = re.compile(_LEAD + rf"(?:{_AUXILIARY})\b", re.IGNORECASE)
"""A question to be answered with yes or no."""
CLOSING = re.compile(r"\blet me know\b|\bfeel free\b|\bdon't worry\b", re.IGNORECASE)
"""Asks in passing, at the end of a message."""
LEFTOVER = re.compile(r"[A-Za-z\u00c0-\u024f]{2,}|\d|\\\w+|\b[a-zA-Z]\b\s*[=+*/^-]")
"""Something that can tell: a word, a number, a formula."""
