"""Files whose task ids do not belong to their dialogues are noticed; others are left alone."""

from trajsmith.records import Message
from trajsmith.records.traces import TraceDialogue, TraceTask
from trajsmith.verify.traces import find_mismatched_tasks


def dialogue(about: str, names: str) -> TraceDialogue:
    return TraceDialogue(
        file="f",
        format="tau2",
        dialogue=f"{about} as {names}",
        messages=(Message(role="user", content=f"My id is user_{about}, the order is W{about}00."),),
        task=TraceTask(name=names, scenario=f"You are user_{names}. You want to cancel order W{names}00."),
    )


def test_dialogues_about_their_own_tasks_are_left_alone() -> None:
    assert find_mismatched_tasks([dialogue(str(n), str(n)) for n in range(10, 20)]) == {}


def test_two_swapped_ids_are_found_alone() -> None:
    rows = [dialogue(str(n), str(n)) for n in range(12, 20)]
    swapped = [dialogue("10", "11"), dialogue("11", "10")]
    assert find_mismatched_tasks([*swapped, *rows]) == {
        swapped[0].id: "it names task 11 and is about task 10",
        swapped[1].id: "it names task 10 and is about task 11",
    }


def test_ids_that_are_off_by_one_spoil_the_whole_file() -> None:
    shifted = [dialogue(str(n), str(n + 1)) for n in range(10, 16)]
    right = [dialogue(str(n), str(n)) for n in range(20, 24)]
    wrong = find_mismatched_tasks([*shifted, *right])
    assert wrong.keys() == {one.id for one in (*shifted, *right)}
    assert "another task fits 5 of the file's 10 dialogues better" in wrong[right[0].id]


def test_a_user_who_says_nothing_is_no_misfit() -> None:
    silent = dialogue("10", "10").model_copy(update={"messages": (Message(role="user", content="Hello?"),)})
    assert find_mismatched_tasks([silent, *(dialogue(str(n), str(n)) for n in range(11, 20))]) == {}
