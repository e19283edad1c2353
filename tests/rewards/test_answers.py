import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.rewards import Answer, AnswerStatus, committed_answer, extract_answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"So \boxed{\frac{1}{\sqrt{2}}} it is.", r"\frac{1}{\sqrt{2}}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"Cut off: \boxed{7 and \boxed{5}", "5"),
        (r"First \boxed{7}. Final answer: 9", "9"),
        (r"Answer: \boxed{4}", "4"),
        ("3 + 4 = 7\n#### 7", "7"),
        ("So we get #### 1,200", "1,200"),
        ("#### 42\n\nHope it helps!", "42"),
        ("#### Monday", "Monday"),
        ("#### Answer: 5", "5"),
        ("The answer is 42.", "42"),
        ("the ANSWER is 3.5. Good luck", "3.5"),
        ("The final answer is **42 apples**.", "42 apples"),
        ("**Final Answer:** 42", "42"),
        ("**Answer**: 42 kg. Let me know!", "42 kg"),
        ("Answer:\n\n42", "42"),
        ("The answer is:\n\n$$\n42\n$$\nDone.", "42"),
        (r"The answer is \[ x = 2 \]", "x = 2"),
        ("The answer is 2**3", "2**3"),
        ("The answer is 5 because 2 + 3 = 5.", "5"),
        ("The answer is 12, not 13.", "12"),
        ("The answer is 1, 2, 3.", "1, 2, 3"),
        ("The answer is (3, 4).", "(3, 4)"),
        ("Answer: yes", "yes"),
        ("my answer = -5", "-5"),
        ("ANSWER: $1,234.50.", "$1,234.50"),
        ("Answer: 1/2. Put another way, the answer is 0.5", "1/2"),
        (r"\boxed{3}, that is \boxed{3.0}", "3"),
    ],
)
def test_committed(text: str, answer: str) -> None:
    assert extract_answer([text]) == Answer((answer,))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I would add 3 and 4.",
        "Is the answer 5?",
        "The answer is 5, right?",
        "What do you think the answer is?",
        "If the answer is 5, we are done.",
        "Check whether the answer is 5.",
        "The answer is not 5.",
        "The answer is correct.",
        "Your answer is wrong.",
        "Your answer: 5",
        "The answer is",
        "Answer:",
        r"\boxed{}",
        r"\boxed{5",
        "#### Step 1: add\nand then?",
        "#### 1. Add the apples\nand then?",
        "##### 5",
        "The answer is $$",
    ],
)
def test_not_committed(text: str) -> None:
    assert extract_answer([text]).status is AnswerStatus.MISSING


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("Answer: 3 or Answer: 4", ("3", "4")),
        ("The answer is 3 or 4.", ("3", "4")),
        ("The answer is either 3, or 4.", ("either 3", "4")),
        (r"\boxed{3} or \boxed{4}", ("3", "4")),
        (r"\boxed{3 \text{ or } 4}", ("3", "4")),
        ("The answer is 3. Wait, the answer is 4.", ("3", "4")),
        ("#### 3\n#### 4", ("3", "4")),
    ],
)
def test_ambiguous_answers_show_their_options(text: str, options: tuple[str, ...]) -> None:
    found = extract_answer([text])
    assert found.status is AnswerStatus.AMBIGUOUS
    assert found.options == options
    assert found.text is None


def test_last_committing_message_decides() -> None:
    assert committed_answer(["Answer: 3", "Sorry. Answer: 4", "Anything else?"]) == "4"
    assert committed_answer(["Answer: 3", "Answer: 4 or 5"]) is None
    assert committed_answer(["Answer: 3", "What is the answer?"]) == "3"
    assert committed_answer([]) is None


@given(st.lists(st.text(max_size=200), max_size=4))
def test_never_raises_and_is_deterministic(texts: list[str]) -> None:
    assert extract_answer(texts) == extract_answer(list(texts))


@given(st.text(alphabet="\\boxed{}4 #Answer:is the,.?\n", max_size=120))
def test_options_are_never_empty(text: str) -> None:
    assert all(option.strip() for option in extract_answer([text]).options)


@given(st.integers(-(10**9), 10**9), st.sampled_from([r"\boxed{{{}}}", "#### {}", "Answer: {}", "The answer is {}."]))
def test_every_form_gives_the_number_back(number: int, form: str) -> None:
    assert committed_answer(["Let me think.", form.format(number), "Bye!"]) == str(number)


@pytest.mark.parametrize(
    "unit", [r"\boxed{", "the answer is ", "if ", "answer: 5 " + " " * 50, "{", "3 or ", "\n", "# "]
)
@pytest.mark.timeout(20)
def test_long_junk_is_read_in_linear_time(unit: str) -> None:
    extract_answer([unit * (100_000 // len(unit))])
