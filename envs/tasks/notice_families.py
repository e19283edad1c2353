"""The notices that ``NoticeTasks`` can pose: wording, values, and what stands in a notice where a value is not known.

In a family's texts ``{topic}`` and the names of its slots stand for values. A fact shares with its notice the value
alone, no other content word, so whether a draft makes it depends on the value.
"""

from dataclasses import dataclass

Values = tuple[str, ...]

DAYS: Values = (
    "Monday 3 May",
    "Tuesday 4 May",
    "Wednesday 5 May",
    "Thursday 6 May",
    "Friday 7 May",
    "Saturday 8 May",
    "Sunday 9 May",
    "Monday 2 June",
    "Tuesday 3 June",
    "Wednesday 4 June",
    "Thursday 5 June",
    "Friday 6 June",
    "Saturday 7 June",
    "Sunday 8 June",
)
TIMES: Values = (
    "9 in the morning",
    "10 in the morning",
    "11 in the morning",
    "1 in the afternoon",
    "2 in the afternoon",
    "3 in the afternoon",
    "4 in the afternoon",
    "5 in the evening",
    "6 in the evening",
    "7 in the evening",
    "8 in the evening",
    "9 in the evening",
)
PLACES: Values = (
    "old library",
    "school hall",
    "town museum",
    "red barn",
    "corner bakery",
    "sports centre",
    "railway station",
    "village church",
    "music room",
    "small theatre",
    "fire station",
    "post office",
    "art gallery",
    "swimming pool",
)
PRICES: Values = tuple(f"{amount} dollars" for amount in range(2, 16))
LOOKS: Values = (
    "red stripes",
    "two broken buttons",
    "a leather strap",
    "yellow dots",
    "a silver handle",
    "many small scratches",
    "a wooden tag",
    "blue laces",
    "a torn corner",
    "three rusty screws",
    "a star sticker",
    "dark green tape",
)
PEOPLE: Values = (
    "Tom Fletcher",
    "Ann Moreau",
    "Ben Okafor",
    "Mia Lindgren",
    "Sam Castillo",
    "Eva Novak",
    "Max Hoffmann",
    "Lily Tanaka",
    "Leo Rossi",
    "Zoe Papadakis",
    "Dan Kowalski",
    "Amy Osei",
    "Omar Haddad",
    "Ines Duarte",
)
THINGS: Values = (
    "a warm jacket",
    "a sharp pencil",
    "an empty jar",
    "a clean towel",
    "a thick notebook",
    "a folding chair",
    "an apron",
    "a water bottle",
    "a pair of gloves",
    "a straw hat",
    "a large basket",
    "a pocket lamp",
)
FOODS: Values = (
    "lemon cake",
    "apple pie",
    "carrot muffins",
    "cheese rolls",
    "cherry tarts",
    "ginger biscuits",
    "plum dumplings",
    "nut bread",
    "honey waffles",
    "berry scones",
    "onion quiche",
    "chocolate brownies",
)
REASONS: Values = (
    "a burst pipe",
    "a film crew",
    "the city marathon",
    "a loose cable",
    "the flower parade",
    "heavy flooding",
    "a fallen tree",
    "tram repairs",
    "fresh paint",
    "a broken kerb",
    "gas works",
    "a bicycle race",
)
DETOURS: Values = (
    "Mill Lane",
    "Oak Avenue",
    "Castle Road",
    "River Drive",
    "Park Row",
    "Hill Street",
    "Garden Way",
    "King Square",
    "North Gate",
    "Bishop Alley",
    "Harbour Walk",
    "Abbey Close",
)
JOBS: Values = (
    "selling tickets",
    "serving soup",
    "painting signs",
    "moving tables",
    "guiding visitors",
    "directing traffic",
    "washing dishes",
    "hanging lights",
    "sorting books",
    "raking leaves",
    "carrying boxes",
    "counting votes",
)


@dataclass(frozen=True, slots=True)
class Slot:
    """One thing that the user knows and tells when asked."""

    name: str
    """Unique within its family."""
    fact: str
    """How the user says it; ``{}`` stands for the value."""
    values: Values
    """A dozen or more, without a full stop."""
    blank: str
    """What somebody who does not know the value writes in its place."""


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of notice."""

    name: str
    """Unique, one word."""
    request: str
    """What the user asks for, with ``{topic}``."""
    topics: Values
    """Public, in small letters."""
    text: str
    """The notice, with ``{topic}`` and the slots."""
    slots: tuple[Slot, ...]


def _day(fact: str = "The date is {}.") -> Slot:
    return Slot("day", fact, DAYS, "some day soon")


def _time(fact: str = "It begins at {}.") -> Slot:
    return Slot("time", fact, TIMES, "whatever hour suits you")


def _place(fact: str = "The venue is the {}.") -> Slot:
    return Slot("place", fact, PLACES, "usual spot")


FAMILIES: tuple[Family, ...] = (
    Family(
        "meeting",
        "I need a notice about the next meeting of the {topic}.",
        (
            "gardening club",
            "chess club",
            "book club",
            "hiking club",
            "film club",
            "sewing circle",
            "youth choir",
            "drama group",
            "science club",
            "rowing team",
            "parents council",
            "debating society",
        ),
        "The {topic} meets on {day} at {time} in the {place}. This time {guest} will speak. Please bring {thing}.",
        (
            _day(),
            _time(),
            _place(),
            Slot("guest", "The guest is called {}.", PEOPLE, "somebody nice"),
            Slot("thing", "People have to have {} with them.", THINGS, "whatever they like"),
        ),
    ),
    Family(
        "lost",
        "I need a notice about a lost {topic}.",
        (
            "umbrella",
            "scarf",
            "wallet",
            "backpack",
            "bicycle",
            "camera",
            "phone",
            "suitcase",
            "violin",
            "teddy bear",
            "raincoat",
            "helmet",
        ),
        "Lost on {day} near the {place}: one {topic} with {look}. Please call {owner}. The reward is {price} in cash.",
        (
            Slot("look", "You know it by {}.", LOOKS, "special marks"),
            _place("It went missing at the {}."),
            _day("It disappeared on {}."),
            Slot("owner", "It belongs to {}.", PEOPLE, "its owner"),
            Slot("price", "Whoever brings it back gets {}.", PRICES, "a few coins"),
        ),
    ),
    Family(
        "closure",
        "I need a notice that the {topic} will be closed.",
        (
            "stone bridge",
            "market square",
            "ring road",
            "car park",
            "bus lane",
            "coast path",
            "long tunnel",
            "main street",
            "tennis court",
            "public garden",
            "east entrance",
            "ferry dock",
        ),
        "The {topic} is closed from {day} because of {reason} until {time}. "
        "Please use {detour} or ask {contact} for help.",
        (
            _day("It shuts on {}."),
            Slot("reason", "The cause is {}.", REASONS, "some trouble"),
            _time("It opens again at {}."),
            Slot("detour", "The way around is {}.", DETOURS, "another route"),
            Slot("contact", "The person in charge is {}.", PEOPLE, "the staff"),
        ),
    ),
    Family(
        "sale",
        "I need a notice about a bake sale for the {topic}.",
        (
            "school band",
            "animal shelter",
            "football team",
            "new playground",
            "children's ward",
            "class trip",
            "food bank",
            "ballet school",
            "puppet stage",
            "scout camp",
            "reading corner",
            "lifeboat crew",
        ),
        "Bake sale for the {topic}: come on {day} to the {place}! You can get {food} from {seller} for {price} each.",
        (
            _day(),
            _place(),
            Slot("seller", "The baker is {}.", PEOPLE, "our team"),
            Slot("food", "There will be {} to eat.", FOODS, "tasty things"),
            Slot("price", "One portion costs {}.", PRICES, "a small sum"),
        ),
    ),
    Family(
        "class",
        "I need a notice about a {topic} class.",
        (
            "pottery",
            "yoga",
            "guitar",
            "cooking",
            "judo",
            "painting",
            "tango",
            "piano",
            "drawing",
            "weaving",
            "fencing",
            "singing",
        ),
        "A {topic} class starts on {day} at {time}. We are in the {place} with {teacher}. It costs {price} in all.",
        (
            _day("The first lesson is on {}."),
            _time("Lessons begin at {}."),
            Slot("teacher", "The instructor is {}.", PEOPLE, "an expert"),
            _place(),
            Slot("price", "The fee is {}.", PRICES, "very little"),
        ),
    ),
    Family(
        "helpers",
        "I need a notice that asks for helpers at the {topic}.",
        (
            "spring fair",
            "street party",
            "jazz festival",
            "harvest supper",
            "flea market",
            "charity run",
            "winter ball",
            "boat race",
            "poetry night",
            "open day",
            "garden show",
            "kite contest",
        ),
        "The {topic} on {day} needs help with {job}. We meet at {time} at the {place}. Please write to {contact}.",
        (
            _day("The date is {}."),
            Slot("job", "The task is {}.", JOBS, "many things"),
            _time("Work begins at {}."),
            _place("The venue is the {}."),
            Slot("contact", "The organiser is {}.", PEOPLE, "one of us"),
        ),
    ),
)
"""All families; a notice has 25 to 45 words."""
