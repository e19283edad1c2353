"""The words by which acts of user turns are told: regular expressions, each said of one sentence."""

from __future__ import annotations

import re


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in alternatives), re.IGNORECASE)


_LEAD = (
    r"^\W*(?:(?:ok|okay|yes|yeah|no|and|but|so|also|then|now|next|first|lastly|finally|maybe|perhaps|just|actually|well"
    r"|great|hi|hello|hey|please|pls|let's see|thanks|again|still|hm+|oh|to start|instead|overall|in addition)\b[\s,.!:;-]*)*"
)
_VERBS = (
    "add|advise|adjust|answer|calculate|change|check|clarify|combine|come up|compare|compute|condense|continue|convert"
    "|correct|create|cut|define|delete|describe|discuss|do|draft|drop|edit|elaborate|emphasi[sz]e|end|expand|explain"
    "|fill|find|finish|fix|focus|format|gear|generate|get rid|give|go (?:ahead|back|on|over)|help|highlight"
    "|improve|include|incorporate|insert|keep|leave|let me (?:know|see)|let's (?!say)|lets|list|make|mention|merge|move|name"
    "|provide|prove|put|reduce|redo|remove|rephrase|replace|restate|revise|rewrite|say|share|shorten|show|simplify|solve"
    "|speak|split|start|state|suggest|summari[sz]e|swap|switch|take|talk|teach|tell|tie|touch|translate|trim|try|turn"
    "|update|use|utili[sz]e|walk me|work|write|be (?:sure|more|less)|don't|do not|stop|continue"
)
_MODAL = r"(?:can|could|would|will|shall|should|may|might)"

_AUXILIARY = (
    "is|are|was|were|am|isn't|aren't|wasn't|do|does|did|don't|doesn't|didn't|have|has|had|haven't|hasn't|can|could|can't"
    "|couldn't|would|wouldn't|will|won't|shall|should|shouldn't|may|might|must"
)
_ASIDE = r"(?:really |also |just |still |definitely |actually |only |think (?:i |we )?)*"
QUESTION_FORM = _any(
    _LEAD + r"(?:(?:in|for|of|to|at|by|from|on) )?(?:what|which|who|whom|whose|when|where|why|how)\b",
    _LEAD + rf"(?:{_AUXILIARY})\s+\w+",
    r"(?:[,:;]|\bso\b|\bbut\b|\band\b)\s*(?:so |then |and |or |but )*(?:what|which|why|how|where|when|is|are|does|do|did|can|could"
    r"|would|will|should)\s[^,]*$",
    r"\b(?:right|correct|yes|no|agree)\s*\?+$",
)
"""Has the form of a question."""
OPEN_QUESTION = _any(
    _LEAD + r"(?:what (?:is|are|was|does|do|did|'s|should|would)|what's|which|why|how (?:do|would|should|can|could|did|is|are"
    r"|many|much|about|to)|where (?:do|would|should))\b",
    _LEAD + rf"(?:{_AUXILIARY})\s+(?:i|you|we|it|they|this|that|these|there|the|my|your)\b",
)
"""Begins so clearly like a question that it is one without a question mark too."""
VERB_FIRST = _any(_LEAD + rf"(?:{_VERBS})\b(?!\s*[=:+\-*/]|\s*\?$|\s+(?:not|n't)\b)")
"""Begins with an order, or, where a question was put, with the step that answers it."""
REQUEST = _any(
    rf"\b{_MODAL} (?:you|we|u)\b|\bcan better\b",
    rf"\b(?:i|we)(?:'d| would| will|'ll| am going to|'m going to)? {_ASIDE}(?:need|like|love|prefer|want|wish)(?: you| your| some| more| a| an"
    r"| the| any| to (?:know|see|do|get|hear|understand|learn|solve|have|write|make|create|add|include))\b",
    rf"\b(?:i|we) {_ASIDE}need (?!to\b)|\bi hope to\b|\bneed (?:some |your |more )?help\b|\bi(?:'d| would) {_ASIDE}like\b",
    r"\bhelp me\b|\bmake sure\b|\bplease (?!d)\w+|,? please\W*$",
    r"^\W*(?:next|go on|continue|again|more|hint|solution|answer|example)(?: (?:step|one|problem|please))*\W*$",
    r"\b(?:you're|you are) going to\b",
)
"""Wants something done."""
WISH_FOR_TEXT = _any(
    rf"\b(?:i|we)(?:'d| would|'ll| will)? {_ASIDE}(?:want|need|hope) to \w+",
    r"\b(?:it|this|that|the \w+|we|you|he|she|they) (?:really |also )?should (?!be from)\w+|\bneeds? to be\b|\bhow about\b|\bwhat about\b",
    rf"\bmaybe (?:{_VERBS}|have)\b",
)
"""Wants something of a text."""
"""Wants something done."""
ADDRESSED = _any(rf"\b{_MODAL} (?:you|we|u)\b", r"\bplease\b", r"\bhelp me\b", r"\bmake sure\b")
"""Asks the other to do it, in so many words."""
CHANGE = _any(
    r"\b(?:add(?:ed|ing)?|adjust|advise|change|condense|cut|delete|drop|edit|emphasi[sz]e|expand|fill|fix|focus|gear"
    r"|geared|highlight|improve|include|including|incorporate|insert|keep|make (?:it|this|that|the|sure|him|her|them)|mention"
    r"|merge|blend|move|omit|put|reduce|remove|rephrase|replace|revise|reword|rewrite|say|shorten|simplify|swap|switch|take out"
    r"|tell (?:them|him|her|the|how)|talk about|tone|trim|update|utili[sz]e|work in|longer|shorter|less than|more detail"
    r"|more details|be sure|get rid|leave out|use|set|have (?:him|her|them|the|it|\w+ \w+ to)|bring in|redo|turn)\b",
    r"\bhow about\b|\b(?:it|this|that|the \w+|he|she|they|we) (?:really )?should\b|\bi(?:'d| would) (?:really )?like\b"
    r"|\bneeds? to be\b|\bgive (?:an|some|more)\b|\bexplain\b|\bprovide\b",
)
"""Names a change of a text; counts where a text was drafted."""
NEW_PIECE = _any(
    r"\b(?:next|lastly|another|new) (?:i|we|story|post|e-?mail|letter|poem|question|problem)\b",
    r"\bnext,? i want\b|\blastly\b",
    r"^\W*(?:what|why|who|when|where|is|are|do|does)\b",
    r"\b(?:any|some|other|more|what) (?:\w+ )?(?:ideas|suggestions|tips)\b|\btips that\b|\bwhat (?:else|are)\b",
)
"""Asks for something of its own instead of a change."""
SHOULD_BE = _any(
    r"\b(?:it|that|this|answer|result|\w+) (?:should|ought to) (?:have )?be(?:en)?\b(?!.*\?)",
    r"\d\s*,?\s*(?:and )?not\s+(?:\w+\s+)?\d|\bonly (?:one|\d+)\b.*\bnot\b|\binstead of\b",
    r"\b(?:would|'d) have (?:preferred|liked)\b|\bplease (?:do not|don't)\b|\bstop (?:\w+ing|being)\b",
    r"\b(?:shorter|simpler|smaller|slower) (?:answers?|words|steps|terms|language)\b|\bone (?:step|thing) at a time\b",
)
"""Says how an answer, or the way of answering, should be instead."""
CONFUSED = _any(
    r"\b(?:don'?t|do not|didn'?t|did not|can'?t|cannot|can not|couldn'?t|still not|not|never) (?:really |quite |even "
    r"|fully |exactly |at all )*(?:know(?! (?:him|her|them|about))|understand(?:ing)?|get (?:it|this|that|what|how|why|the)|see how"
    r"|see why|follow(?:ing)?|sure|certain|wrap my head|figure)\b(?!.*\bso\b.*\bwrong)",
    r"\b(?:confus(?:ed|ing|es)|lost me|i'?m (?:so |really |totally |completely )?(?:lost|stuck)|getting stuck|am stuck|huh"
    r"|idk|no (?:idea|clue)|over my head|unclear|dunno|unsure|beyond me|baffled|clueless)\b",
    r"\bwhat (?:do|did) you mean\b|\bwhat (?:does|is) (?:that|this)(?: even)? mean\b|\b(?:n'?t|not) making (?:\w+ )?sense\b|\bn'?t make (?:\w+ )?sense to me\b|\bwhat\?+$|^\W*(?:um+|uh+)?\W*what\W*$",
    r"\b(?:i|we) (?:really |just |still |honestly )*(?:can'?t|cannot|can not|couldn'?t)\W*(?:do (?:it|this|that))?\W*$",
    r"\bhard to (?:understand|follow)\b|\bhow does (?:this|that) help\b|^\W*(?:ok(?:ay)?\W*)?(?:so|and now)\?+$",
)
"""Says that they do not know or understand."""
SELF_SURE = _any(r"\bi'?m not sure (?:if|that|i agree)|\b(?:make|be|for) sure\b|\bare you sure\b")
"""Not confusion, though "not sure" or "sure" is said."""
AGREES = _any(
    r"^\W*(?:oh+,? ?|ah+,? ?|hm+,? ?|well,? ?|sorry,? ?)*(?:yes|yep|yeah|yup|ya|(?:ok|okay|k|alright|all right)(?=\W*$|\s*[,.!;:-])|sure|fine|agreed?|exactly"
    r"|indeed|absolutely|definitely|of course|cool|nice|great|perfect|excellent|awesome|wonderful|fantastic|amazing|good"
    r"|right|correct|true|understood|i see|got it|gotcha|sounds good|very (?:good|nice|well)|love it|no way)\b(?! (?:is|are|was|question"
    r"|morning|evening|afternoon|luck|day))")
"""Begins with agreement."""
APPROVES = _any(
    r"\b(?:got it|i (?:get|see|understand) (?:it|that|this|now|what|how|why|the)|understood|makes? (?:a lot of |perfect |more )?sense|that helps"
    r"|i (?:agree|concur|see)|agree with|i (?:really |do )?(?:like|love) (?:it|this|that|the|your|how)|happy with|(?:you're|you are|your) right"
    r"|(?:that|this|it|everything|all)(?:'s| is| was| all|) (?:\w+ )?(?:looks?|sounds?|seems?|reads?|works?)(?: \w+){0,3} "
    r"(?:great|good|perfect|fine|right|correct|nice|amazing|awesome|better|wonderful)"
    r"|looks? (?:great|good|perfect|fine|right|nice)|sounds? (?:great|good|perfect|fine|right|nice)|that works|works for me|good to go)\b",
    r"\b(?:that|this|it|which|these|those)(?:'s|s| is| was| are|'re) (?:\w+ ){0,2}?(?:great|good|perfect|right|correct|fine|nice|awesome"
    r"|amazing|excellent|wonderful|better|helpful|fantastic|it|exactly|what i (?:wanted|needed|was looking for))\b",
    r"\bwhat i (?:wanted|needed|was looking for|had in mind)\b|\b(?:made|makes) (?:\w+ )+?(?:better|easier|clearer)\b|\bgood ideas?\b|\bgreat start\b"
    r"|\bwas (?:funny|great|helpful|good)\b|\bgood (?:fix|point|start|job|idea)\b|\bthat'?s the one\b|\bas i imagined\b|^\W*i know\W*$",
)
"""Agrees with or approves what was said."""
NOT_ACCEPT = _any(
    r"\bnot (?:\w+ ){0,2}(?:right|correct|good|great|what i|it|perfect|true|fine|better|sure|make sense|agree)\b",
    r"n'?t (?:\w+ ){0,3}(?:right|correct|good|great|agree|make sense|like|understand|see|get|look|work)\b",
    r"\b(?:do not|does not|did not|cannot|never) (?:\w+ ){0,2}(?:agree|make sense|like|understand|see|get)\b",
    r"\b(?:sure|right|correct|ok|okay)\s*\?+$|\bwould (?:be|have been) (?:better|good|nice|great)\b|\bmake (?:it|this|that) \w+",
)
"""Denies, doubts or only wishes it."""
OPINION = _any(
    r"\b(?:looks?|sounds?|seems?|feels?|reads?|is|was|are|it's|that's) (?:\w+ ){0,2}(?:great|good|perfect|nice|better|funny|awesome"
    r"|easier|flowery|long|short|formal|useful)\b",
    r"\b(?:made|makes) .*\b(?:better|easier|clearer)\b",
)
"""Judges what the other wrote."""
REJECT = _any(
    r"^\W*(?:hm+,? ?|well,? ?|um,? ?|oh,? ?)*(?:no|nope|nah|wrong|incorrect|false)\b(?! (?:problem|worries|idea|clue|way|matter|more))",
    r"\b(?:is|are|was|were|that's|thats|it's|you're|you are|be|seems?|looks?|but) (?:(?!proven)\w+ ){0,3}?(?:wrong|incorrect|mistaken|false|a mistake|off)\b",
    r"\b(?:not|n'?t) (?:\w+ ){0,2}?(?:right(?! now)|correct|true|what i (?:wanted|asked|meant|had in mind|was looking for)|helpful|useful|helping"
    r"|working|the answer|agree|make (?:any )?sense|quite)\b",
    r"\bi (?:really |just )?(?:do not|don'?t) (?:really |quite |even )?(?:like|want|agree|think (?:so|that|it|this)|believe)\b",
    r"\byou (?:\w+ )?(?:didn'?t|did not|don'?t|do not|forgot|missed|left|ignored|skipped|never|failed|keep|repeated)\b",
    r"(?<!be )(?<!be way )\btoo (?:long|short|formal|flowery|wordy|high|low|generic|complicated|much|many|vague|big|small|thin)\b",
    r"\bare you (?:really )?(?:sure|certain)\b|\breally\?|\bis that really\b|\bhow (?:is|can|could) .*\b(?:not|less|more|be)\b.*\?"
    r"|\bcan'?t be (?:right|it)|\btry again\b|\bdisagree|\bmy (?:book|answer) (?:says|was|is|disagrees)\b|\bdoesn'?t (?:look|seem|feel|work|add)",
    r"\btaking (?:too|so) long\b|\bsomething (?:is|looks) off\b|\b(?:bad|wrong|false) (?:info\w*|advice)\b|\bwe missing\b|\b(?:still )?missing\b|\bwould have preferred\b|\bnot really\b"
    r"|\b(?:nothing|anything) else\b(?!.*\?)|\bi thought\b|\b(?:but|though|,) (?:it|this|that) (?:just )?(?:sounds|seems|feels|looks) like\b"
    r"|\bsomething (?:else|different)\b|\bi (?:get|got) (?:a )?different\b",
    r"^\W*for .*\bonly\b.*\bnot\b|\bisn'?t (?:that|this|it|your)\b.*\b(?:wrong|incorrect|not)\b",
)
"""Says that something said or offered is wrong or not wanted."""
THANK = _any(
    r"\b(?:thanks|thank you|thankyou|thx|thank u|tysm|ty|much appreciated|cheers|grateful to you)\b(?![ -](?:note|letter|card|e-?mail|speech|message|to \w+ for))",
    r"\bi (?:really )?appreciate (?:it|that|this|you|your|the help)\b",
)
"""Thanks the other."""
STOP = _any(
    r"\b(?:good)?bye\b(?! bye\w)|\bsee (?:you|ya)\b(?! \w+ing)|\btalk to you later\b|\b(?:have a (?:good|great|nice) (?:day|one|evening|night|weekend))\b",
    r"\b(?:that(?:'s| is|s| will be| would be)|this is) (?:all|everything)\b(?! (?:i|we) (?:know|have|remember))(?!.*\b(?:can|please|write)\b)"
    r"|\bi(?:'m| am|m) (?:all )?(?:done|finished|good now|all set)\b|\b(?:i|we) (?:think (?:i|we) )?(?:am|are)? ?(?:good|done|finished) (?:now|here)\b"
    r"|\bi think (?:i am|i'm) (?:good|done|set)\b",
    r"\bgiv(?:e|ing) up\b(?! (?:my|the|a|on (?:my|your|his|her|their|the)|smoking|when)\b)|\bi quit\b|\bnever ?mind\b|\bforget (?:it|about it)\b|\bi'?ll (?:stop here|ask someone)\b"
    r"|\bno (?:more|further|other) (?:questions|changes|help|edits)\b|\bnothing (?:else|more) (?:to|needed)\b(?!.*\btell\b)|\bi can (?:solve|do|take) it (?:now|from here)\b"
    r"|\b(?:end|stop) (?:the |this )?(?:chat|conversation|here)\b",
)
"""Ends the dialogue, or says that they are done."""
SMALL_TALK = _any(
    r"^\W*(?:hi|hello\w*|hey|good (?:morning|evening|afternoon)|yo|you too|i hope so|yay|wow|lol|haha|oops|welcome|no problem)\b"
    r"(?: (?:there|again|everyone))?\W*$"
)
"""A greeting or an exclamation and nothing else."""
PREMISE = _any(r"(?:^|[.:\"])\W*(?:let(?! us)|assume|suppose|define|denote|given|consider)\b(?!'s| me)")
"""States a premise of a problem."""
FORM_WORDS = frozenset(
    ["article", "blog", "create", "draft", "email", "essay", "help", "letter", "like", "make", "note", "paragraph", "piece", "please", "post", "short", "story", "want", "word", "write"]
)
"""What a wish for a text says whatever it is about."""
CHECK = _any(
    r"\b(?:make|makes|making) sense\b|\bdo you (?:understand|see|follow|agree|want|need|have any (?:other |more |further )?questions)\b"
    r"|\bwould you (?:like|prefer)\b|\b(?:shall|should) (?:i|we)\b|\bany (?:other )?questions\b|\bready\b|\bwant me to\b|\blet me know\b|\bdoes (?:this|that) help\b"
    r"|\bis (?:this|that|it) (?:ok|okay|clear|better|what)\b|\bfeel free\b|\bclear\b|\bhow does (?:that|this) sound\b"
)
"""A question after understanding, or an offer."""
OWN_STEP = _any(
    _LEAD + r"(?:is|was|isn't|would|wouldn't|could|should|do|does|am|are|aren't|did|must|will) "
    r"(?:(?!that the|it the|it all|that all|that right|it right|my original)(?:i|it|that|my|we|x|n|the answer|the next step|the first step))\b"
    r"(?! (?:mean|possible|still|also|help|hold|even))",
    r"\b(?:would|should|could) (?:it|that|x|the answer|i|we) be\b|\bdo you mean (?:like|that|i|we)\b|\bis that it\b|\bwhat about\b",
    r"\b(?:i|we) (?:think|thought|feel like|guess|got|get|know)\b|\bthe answer\b.* (?:is|be)\b|\bcorrect\W*\?+$|\bmust be\b|\bwe missing\b",
)
"""Brings a step of one's own into a question."""
BROUGHT = _any(
    r"\b(?:add(?:ed|ing)?|mention(?:ed|ing)?|say(?:ing|s)?|include[sd]?|including|state|tell|explain|indicat\w+|emphasi[sz]e|show|know|writ\w+|idea|fact|advise"
    r"|note|section|paragraph|convey|stress)\b[^.?!]{0,60}?\b(?:that|how (?:i|we|my|our|much|important|a)|because|since|so|as one)\b",
    r"\b(?:my|our|his|her|their) (?:\w+ ){0,2}(?:name|son|daughter|husband|wife|friend|title|position|number|boss|sister|brother|mother|father|house|job)\b",
    r"\b(?:as|to|by|at|on|is|was|named|called) (?:my )?[\"\u201c]?(?:\d[\d/.,%]*)(?![\d/.,%]*\W+(?:\w+ )?words?\b)|\b(?:advise|say|mention) (?:to|the|it)\b|\bbecause\b|\bhow about \w+ (?:\w+ )?(?:doesn|don|does|is|was|has|had)"
    r"|\bsuch as\b",
)
"""A request that brings the point itself."""
OPTION = _any(
    r"\b(?:option|tips?|number|suggestions?|choice|version|idea)s? (?:\d|[a-d]\b|one|two|three)|\bthe (?:second|third|latter|former) (?:one|option|version)\b"
    r"|\b(?:both|all) of (?:them|those|these)\b"
)
"""Takes up one of the other's options."""
NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+")
"""A name inside a sentence."""
YES_OR_NO = re.compile(_LEAD + rf"(?:{_AUXILIARY})\b", re.IGNORECASE)
"""A question to be answered with yes or no."""
CAN_YOU = re.compile(r"\b(?:can|could|are) you\b", re.IGNORECASE)
BARE_YES = re.compile(r"\W*(?:yes|yeah|yep|ok|okay|sure|k|yup)\W*", re.IGNORECASE)
BARE_NO = re.compile(r"^\W*(?:no|nope|nah)\b(?=\W*$|\W+(?:maybe|but|i|can|please)\b)", re.IGNORECASE)
CLOSING = re.compile(r"\blet me know\b|\bfeel free\b|\bdon't worry\b", re.IGNORECASE)
"""Asks in passing, at the end of a message."""
LEFTOVER = re.compile(r"[A-Za-z\u00c0-\u024f]{2,}|\d|\\\w+|\b[a-zA-Z]\b\s*[=+*/^-]")
"""Something that can tell: a word, a number, a formula."""
