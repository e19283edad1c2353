"""What scripted users say, apart from their task. Two banks that share no phrase: one to train with, one held out."""

from dataclasses import dataclass

Phrases = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PhraseBank:
    """Phrases by purpose. A user draws one of them each time."""

    greet: Phrases
    """Before the opening."""
    lead_in: Phrases
    """Before a fact."""
    accept: Phrases
    """The answer will do."""
    accept_draft: Phrases
    """The document will do."""
    thanks: Phrases
    """On leaving satisfied."""
    reject: Phrases
    """The answer is wrong (or taken for wrong)."""
    doubt: Phrases
    """A right answer that the user does not trust yet."""
    confused: Phrases
    """The assistant neither asked nor answered, or the user did not follow."""
    nothing_left: Phrases
    """Asked, but everything was told."""
    give_up: Phrases
    """Patience has run out."""
    write_it: Phrases
    """Everything about the document was told; where is it?"""
    cover: Phrases
    """Before outline points."""
    add: Phrases
    """Before points that the user had not told yet and the draft lacks."""
    forgot: Phrases
    """Before points that were told and the draft lacks."""
    too_long: Phrases
    """The draft is far longer than what they want."""
    too_short: Phrases
    """The draft is far shorter than what they want."""
    not_it: Phrases
    """The draft is not what they want and they cannot say why."""


DEFAULT = PhraseBank(
    greet=("Hi.", "Hello!", "Hey!", "Can you help me with this?", "I need help."),
    lead_in=("Ok,", "Um,", "Oh,", "So,", "Well,", "Sure,"),
    accept=("Yes, that's right.", "Got it.", "Great, that makes sense.", "Perfect.", "Ok, that works."),
    accept_draft=("That's great.", "Perfect, I like it.", "I'm happy with this.", "This is what I wanted."),
    thanks=("Thanks!", "Thank you!", "Thanks a lot."),
    reject=(
        "No, that's not right.",
        "Hmm, I don't think so.",
        "That doesn't look right.",
        "I don't think that's the answer.",
        "That seems wrong to me.",
        "No, try again.",
    ),
    doubt=("Are you sure?", "Hmm, is that really right?", "Can you check that again?"),
    confused=(
        "Ok... so?",
        "I don't get it.",
        "What do you mean?",
        "I'm not sure what to do with that.",
        "Sorry, I'm lost.",
        "What's the next step?",
    ),
    nothing_left=("That's all I know.", "I don't have anything else.", "I told you everything I know."),
    give_up=("I give up, thanks anyway.", "This isn't working, I'll stop here.", "Never mind."),
    write_it=("That's everything, can you write it now?", "That's all I have. Please write a draft."),
    cover=("It should cover", "I want it to be about", "Please talk about"),
    add=("Please add this:", "Can you also include this?", "It should also say this:"),
    forgot=("You forgot something:", "You left this out:", "It's still missing this:"),
    too_long=("It's too long, please make it shorter.", "Can you cut it down?"),
    too_short=("It's too short, I need more.", "Can you make it longer?"),
    not_it=("That's not quite what I had in mind.", "Hmm, it doesn't feel right yet."),
)

HELD_OUT = PhraseBank(
    greet=("Good morning.", "Hi there!", "Quick question.", "I'm stuck on something.", "Yo!"),
    lead_in=("Right,", "Uh,", "Yeah,", "Hm,", "Let me see,", "Actually,"),
    accept=("Oh nice, I see it now.", "Looks good.", "Yep.", "That's the one.", "Ah, understood."),
    accept_draft=("Love it.", "This will do nicely.", "Good to go.", "Exactly how I imagined it."),
    thanks=("Cheers!", "I appreciate it.", "Much appreciated!"),
    reject=(
        "Nope.",
        "Something is off there.",
        "I got something different.",
        "That can't be it.",
        "Wrong, sorry.",
        "My book disagrees.",
    ),
    doubt=("Really? I had my doubts.", "Would you double-check?", "You certain about this?"),
    confused=(
        "Huh?",
        "You lost me.",
        "Not following.",
        "How does this help?",
        "And now?",
        "I still don't understand this.",
    ),
    nothing_left=("Nothing more to tell.", "No idea beyond what I said.", "You have all of it already."),
    give_up=("Forget it.", "I'm done, this takes too long.", "I'll ask someone else."),
    write_it=("No more details from me. Go ahead with the text.", "You can start writing, there is nothing to add."),
    cover=("Make it deal with", "I was thinking of", "There should be a part on"),
    add=("One more thing to mention:", "Work this in as well:", "I'd also like this in there:"),
    forgot=("I mentioned this before, but it's not there:", "Where did this go?", "Put this back in:"),
    too_long=("Way too wordy, trim it.", "Nobody will read all of that, shorten it a lot."),
    too_short=("That's a bit thin, expand it.", "There should be more to it, flesh it out."),
    not_it=("I pictured something else.", "Not really the piece I wanted."),
)
