"""What reports know of earlier results: the same thing before, and those beside it as they are now."""

from trajsmith.records import FromOutput, FromUser, GoldCall
from trajsmith.usersim.shown_rows import find_shown_before, list_other_rows

LOCKS = {"result": [{"lock_id": "L1", "status": "unlocked"}, {"lock_id": "L2", "status": "unlocked"}]}


def lock(number):
    source = FromOutput(call=0, path="$.result[*].lock_id")
    result = {"lock_id": f"L{number}", "status": "locked"}
    return GoldCall(
        tool="lock", arguments={"lock_id": f"L{number}"}, provenance={"lock_id": source}, effect="write", result=result
    )


def test_the_others_are_as_later_calls_have_left_them():
    first, second = lock(1), lock(2)
    assert list_other_rows([LOCKS, first.result], first) == [{"lock_id": "L2", "status": "unlocked"}]
    shown = [LOCKS, first.result, second.result]
    assert list_other_rows(shown, second) == [{"lock_id": "L1", "status": "locked"}]


def test_before_a_write_is_what_was_shown_of_its_thing():
    listing = GoldCall(tool="list_locks", arguments={}, provenance={}, effect="read", result=LOCKS)
    assert find_shown_before([listing], [LOCKS], lock(2)) == {"lock_id": "L2", "status": "unlocked"}
    assert find_shown_before([listing], [{"result": []}], lock(2)) is None


def test_before_a_look_up_is_its_last_result_for_the_same_arguments():
    def measure(connection):
        return GoldCall(
            tool="measure", arguments={"connection": connection},
            provenance={"connection": FromUser(known="connection")}, effect="read",
        )  # fmt: skip

    calls = [measure("wifi"), measure("mobile"), measure("wifi")]
    assert find_shown_before(calls, [{"mbps": 3}, {"mbps": 9}, {"mbps": 5}], measure("wifi")) == {"mbps": 5}
    assert find_shown_before(calls[1:2], [{"mbps": 9}], measure("wifi")) is None
