"""Layout of lists and clauses in what an agent tells."""

import pytest

from trajsmith.phrasing import join_items, join_paragraphs, lay_out_items, use_language

BILLS = "You have 3 bills: £97.40 for January, open; £100.15 for December, paid; £96.20 for November, paid."


def test_three_items_stand_below_each_other():
    assert lay_out_items(f"I understand. {BILLS} More?") == (
        "I understand. You have 3 bills:\n"
        "- £97.40 for January, open\n- £100.15 for December, paid\n- £96.20 for November, paid\n\nMore?"
    )


@pytest.mark.parametrize(
    ("text", "laid"),
    [
        (
            "There's the Lamp, £5.00; the Rug, £6.00; and the Mat, £7.00.",
            "This is what there is:\n- Lamp, £5.00\n- Rug, £6.00\n- Mat, £7.00",
        ),
        (
            "I see W1 (2 May): 1 x Lamp; W2 (3 May): 1 x Rug; W3 (4 May): 1 x Mat.",
            "I see:\n- W1 (2 May): 1 x Lamp\n- W2 (3 May): 1 x Rug\n- W3 (4 May): 1 x Mat",
        ),
        (
            'The steps are: 1. open the "door; lid"; 2. pull; 3. close it.',
            'The steps are:\n- Open the "door; lid"\n- Pull\n- Close it',
        ),
        (
            "On 3 May 2026 you have A at 09:00; on Monday 4 May B at 10:00; on 5 May, C at 11:00.",
            "Here's what's on:\n- 3 May 2026: A at 09:00\n- Monday 4 May: B at 10:00\n- 5 May: C at 11:00",
        ),
        ("The card goes with A, 1; B, 2; C, 3.", "The card goes with A, 1; B, 2; and C, 3."),
        ("We have Pass, £6.00 for 7 days; Week, £19.00.", "We have Pass, £6.00 for 7 days, and Week, £19.00."),
        ("You have the archive (new); the drive (old).", "You have the archive (new) and the drive (old)."),
        (
            "These are your bills: the May bill, which is open; the April bill, which is paid.",
            "These are your bills: the May bill, which is open, and the April bill, which is paid.",
        ),
        ("It's deleted; it's kept until 3 May.", "It's deleted. It's kept until 3 May."),
        ("A is on; B is off; C is broken.", "A is on. B is off. C is broken."),
        ("Which one is it: A, 1; B, 2; or C, 3?", "Which one is it: A, 1; B, 2; or C, 3?"),
        ("It says:\none; two", "It says:\none; two"),
    ],
    ids=[
        "no_colon",
        "inner_colons",
        "steps",
        "days",
        "no_lead",
        "two_items",
        "two_items_without_commas",
        "relative_clauses",
        "clauses",
        "three_clauses",
        "question",
        "lines",
    ],
)
def test_semicolons_join_neither_clauses_nor_two_items(text, laid):
    assert lay_out_items(text) == laid


def test_items_stay_in_one_line_where_they_cannot_stand_below_each_other():
    assert lay_out_items(BILLS, stacked=False) == BILLS.replace("; £96.20", "; and £96.20")


def test_german_lists_are_laid_out_alike():
    with use_language("de"):
        assert (
            lay_out_items("Gelöscht; bis 3. Mai ist es im Papierkorb.") == "Gelöscht. Bis 3. Mai ist es im Papierkorb."
        )
        assert lay_out_items("Es gibt: A, 1; B, 2; C, 3.") == "Es gibt:\n- A, 1\n- B, 2\n- C, 3"
        assert join_items(["A, 1", "B, 2"]) == "A, 1; und B, 2"


def test_a_text_after_a_list_is_a_paragraph_of_its_own():
    assert join_paragraphs(["A.", "", "B."]) == "A. B."
    assert join_paragraphs(["We have:\n- A", "B."]) == "We have:\n- A\n\nB."
    assert join_items([]) == "" and join_items(["A"]) == "A"


def test_names_keep_their_letters_at_the_start_of_an_item():
    text = "Here are the moves: e4 (open); exd5 (closed); team-west (open); follow-up call (closed)."
    assert lay_out_items(text).splitlines()[1:] == [
        "- e4 (open)", "- exd5 (closed)", "- team-west (open)", "- Follow-up call (closed)",
    ]  # fmt: skip
