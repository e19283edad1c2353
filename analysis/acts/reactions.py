"""Words of reaction: confusion, agreement, objection, thanks, farewell."""

from __future__ import annotations

import re

from duologue.analysis.acts.patterns import any_of

CONFUSED = any_of(
    (
        r"\b(?:don'?t|do not|didn'?t|did not|can'?t|cannot|can not|couldn'?t|still not|not|never)"
        r" (?:really |quite |even |fully |exactly |at all )*(?:know(?! (?:him|her|them|about))"
        r"|understand(?:ing)?|get (?:it|this|that|what|how|why|the)|see how|see why|follow(?:ing)?|sure"
        r"|certain|wrap my head|figure)\b(?!.*\bso\b.*\bwrong)"
    ),
    (
        r"\b(?:confus(?:ed|ing|es)|lost me|i'?m (?:so |really |totally |completely )?(?:lost|stuck)"
        r"|getting stuck|am stuck|huh|idk|no (?:idea|clue)|over my head|unclear|dunno|unsure|beyond me"
        r"|baffled|clueless)\b"
    ),
    r"\bwhat (?:do|did) you mean\b",
    r"\bwhat (?:does|is) (?:that|this)(?: even)? mean\b",
    r"(?:n't|\bnot) making (?:\w+ )?sense\b",
    r"(?:n't|\bnot) make (?:\w+ )?sense to me\b",
    r"\bwhat\?+$",
    r"^\W*(?:um+|uh+)?\W*what\W*$",
    (
        r"\b(?:i|we) (?:really |just |still |honestly )*(?:can'?t|cannot|can not|couldn'?t)\W*(?:do (?:it"
        r"|this|that))?\W*$"
    ),
    r"\bhard to (?:understand|follow)\b",
    r"\bhow does (?:this|that) help\b",
    r"^\W*(?:ok(?:ay)?\W*)?(?:so|and now)\?+$",
)
"""Says that they do not know or understand."""
SELF_SURE = any_of(
    r"\bi'?m not sure (?:if|that|i agree)",
    r"\b(?:make|be|for) sure\b",
    r"\bare you sure\b",
)
"""Not confusion, though "not sure" or "sure" is said."""
AGREES = any_of(
    (
        r"^\W*(?:oh+,? ?|ah+,? ?|hm+,? ?|well,? ?|sorry,? ?)*(?:yes|yep|yeah|yup|ya|(?:ok|okay|k|alright"
        r"|all right)(?=\W*$|\s*[,.!;:-])|sure|fine|agreed?|exactly|indeed|absolutely|definitely|of course"
        r"|cool|nice|great|perfect|excellent|awesome|wonderful|fantastic|amazing|good|right|correct|true"
        r"|understood|i see|got it|gotcha|sounds good|very (?:good|nice|well)|love it|no way)\b(?! (?:is"
        r"|are|was|question|morning|evening|afternoon|luck|day))"
    ),
)
"""Begins with agreement."""
APPROVES = any_of(
    (
        r"\b(?:got it|i (?:get|see|understand) (?:it|that|this|now|what|how|why|the)|understood|makes?"
        r" (?:a lot of |perfect |more )?sense|that helps|i (?:agree|concur|see)|agree with|i (?:really "
        r"|do )?(?:like|love) (?:it|this|that|the|your|how)|happy with|(?:you're|you are|your) right"
        r"|(?:that|this|it|everything|all)(?:'s| is| was| all|) (?:\w+ )?(?:looks?|sounds?|seems?|reads?"
        r"|works?)(?: \w+){0,3} (?:great|good|perfect|fine|right|correct|nice|amazing|awesome|better"
        r"|wonderful)|looks? (?:great|good|perfect|fine|right|nice)|sounds? (?:great|good|perfect|fine"
        r"|right|nice)|that works|works for me|good to go)\b"
    ),
    (
        r"\b(?:that|this|it|which|these|those)(?:'s|s| is| was| are|'re) (?:\w+ ){0,2}?(?:great|good"
        r"|perfect|right|correct|fine|nice|awesome|amazing|excellent|wonderful|better|helpful|fantastic|it"
        r"|exactly|what i (?:wanted|needed|was looking for))\b"
    ),
    r"\bwhat i (?:wanted|needed|was looking for|had in mind)\b",
    r"\b(?:made|makes) (?:\w+ )+?(?:better|easier|clearer)\b",
    r"\bgood ideas?\b",
    r"\bgreat start\b",
    r"\bwas (?:funny|great|helpful|good)\b",
    r"\bgood (?:fix|point|start|job|idea)\b",
    r"\bthat'?s the one\b",
    r"\b(?:that|this|it) will do\b",
    r"\bas i imagined\b",
    r"^\W*i know\W*$",
)
"""Agrees with or approves what was said."""
NOT_ACCEPT = any_of(
    r"\bnot (?:\w+ ){0,2}(?:right|correct|good|great|what i|it|perfect|true|fine|better|sure|make sense|agree)\b",
    r"n'?t (?:\w+ ){0,3}(?:right|correct|good|great|agree|make sense|like|understand|see|get|look|work)\b",
    r"\b(?:do not|does not|did not|cannot|never) (?:\w+ ){0,2}(?:agree|make sense|like|understand|see|get)\b",
    r"\b(?:sure|right|correct|ok|okay)\s*\?+$",
    r"\bwould (?:be|have been) (?:better|good|nice|great)\b",
    r"\bmake (?:it|this|that) \w+",
)
"""Denies, doubts or only wishes it."""
OPINION = any_of(
    (
        r"\b(?:looks?|sounds?|seems?|feels?|reads?|is|was|are|it's|that's) (?:\w+ ){0,2}(?:great|good"
        r"|perfect|nice|better|funny|awesome|easier|flowery|long|short|formal|useful)\b"
    ),
    r"\b(?:made|makes) .*\b(?:better|easier|clearer)\b",
)
"""Judges what the other wrote."""
REJECT = any_of(
    (
        r"^\W*(?:hm+,? ?|well,? ?|um,? ?|oh,? ?)*(?:no|nope|nah|wrong|incorrect|false)\b(?! (?:problem"
        r"|worries|idea|clue|way|matter|more))"
    ),
    (
        r"\b(?:is|are|was|were|that's|thats|it's|you're|you are|be|seems?|looks?|but)"
        r" (?:(?!proven)\w+ ){0,3}?(?:wrong|incorrect|mistaken|false|a mistake|off)\b"
    ),
    (
        r"(?:\bnot|n't) (?:\w+ ){0,2}?(?:right(?! now)|correct|true|what i (?:wanted|asked|meant"
        r"|had in mind|was looking for)|helpful|useful|helping|working|the answer|agree|make (?:any )?sense(?! to me)"
        r"|quite)\b"
    ),
    (
        r"\bi (?:really |just )?(?:do not|don'?t) (?:really |quite |even )?(?:like|want|agree|think (?:so"
        r"|that|it|this)|believe)\b"
    ),
    (
        r"\byou (?:\w+ )?(?:didn'?t|did not|don'?t|do not|forgot|missed|left|ignored|skipped|never|failed"
        r"|keep|repeated)\b"
    ),
    (
        r"(?<!be )(?<!be way )\btoo (?:long|short|formal|flowery|wordy|high|low|generic|complicated|much"
        r"|many|vague|big|small|thin)\b"
    ),
    r"\byou (?:really )?(?:sure|certain)\b",
    r"\bdouble.?check\b",
    r"\bcheck (?:that|this|it) again\b",
    r"\breally\?",
    r"\bis that really\b",
    r"\bhow (?:is|can|could) .*\b(?:not|less|more|be)\b.*\?",
    r"\bcan'?t be (?:right|it)",
    r"\btry again\b",
    r"\bdisagree",
    r"\bmy (?:book|answer) (?:says|was|is|disagrees)\b",
    r"\bdoesn'?t (?:look|seem|feel|work|add)",
    r"\btaking (?:too|so) long\b",
    r"\bsomething (?:is|looks) off\b",
    r"\b(?:bad|wrong|false) (?:info\w*|advice)\b",
    r"\bwe missing\b",
    r"\b(?:still )?missing\b",
    r"\bwould have preferred\b",
    r"\bnot really\b",
    r"\b(?:nothing|anything) else\b(?!.*\?)",
    r"\bi thought\b",
    r"\b(?:but|though|,) (?:it|this|that) (?:just )?(?:sounds|seems|feels|looks) like\b",
    r"\bsomething (?:else|different)\b",
    r"\bi (?:get|got) (?:a )?different\b",
    r"^\W*for .*\bonly\b.*\bnot\b",
    r"\bisn'?t (?:that|this|it|your)\b.*\b(?:wrong|incorrect|not)\b",
)
"""Says that something said or offered is wrong or not wanted."""
THANK = any_of(
    (
        r"\b(?:thanks|thank you|thankyou|thx|thank u|tysm|ty|much appreciated|cheers"
        r"|grateful to you)\b(?![ -](?:note|letter|card|e-?mail|speech|message|to \w+ for))"
    ),
    r"\bi (?:really )?appreciate (?:it|that|this|you|your|the help)\b",
)
"""Thanks the other."""
STOP = any_of(
    r"\b(?:good)?bye\b(?! bye\w)",
    r"\bsee (?:you|ya)\b(?! \w+ing)",
    r"\btalk to you later\b",
    r"\b(?:have a (?:good|great|nice) (?:day|one|evening|night|weekend))\b",
    (
        r"\b(?:that(?:'s| is|s| will be| would be)|this is) (?:all|everything)\b(?! (?:i|we) (?:know|have"
        r"|remember))(?!.*\b(?:can|please|write)\b)"
    ),
    r"\bi(?:'m| am|m) (?:all )?(?:done|finished|good now|all set)\b",
    r"\b(?:i|we) (?:think (?:i|we) )?(?:am|are)? ?(?:good|done|finished) (?:now|here)\b",
    r"\bi think (?:i am|i'm) (?:good|done|set)\b",
    r"\bgiv(?:e|ing) up\b(?! (?:my|the|a|on (?:my|your|his|her|their|the)|smoking|when)\b)",
    r"\bi quit\b",
    r"\bnever ?mind\b",
    r"\bforget (?:it|about it)\b",
    r"\bi'?ll (?:stop here|ask someone)\b",
    r"\bno (?:more|further|other) (?:questions|changes|help|edits)\b",
    r"\bnothing (?:else|more) (?:to|needed)\b(?!.*\btell\b)",
    r"\bi can (?:solve|do|take) it (?:now|from here)\b",
    r"\b(?:end|stop) (?:the |this )?(?:chat|conversation|here)\b",
)
"""Ends the dialogue, or says that they are done."""
SMALL_TALK = any_of(
    (
        r"^\W*(?:hi|hello\w*|hey|good (?:morning|evening|afternoon)|yo|you too|i hope so|yay|wow|lol|haha"
        r"|oops|welcome|no problem)\b(?: (?:there|again|everyone))?\W*$"
    ),
)
"""A greeting or an exclamation and nothing else."""
CAN_YOU = re.compile(r"\b(?:can|could|are) you\b", re.IGNORECASE)
"""Asks whether they are able to."""
BARE_YES = re.compile(r"\W*(?:yes|yeah|yep|ok|okay|sure|k|yup)\W*", re.IGNORECASE)
"""Yes and nothing else."""
BARE_NO = re.compile(r"^\W*(?:no|nope|nah)\b(?=\W*$|\W+(?:maybe|but|i|can|please)\b)", re.IGNORECASE)
"""No, alone or before another try."""
