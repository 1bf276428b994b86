"""Who the user is: in several environments, somebody whom all of them know."""

from trajsmith.grounding import ValueSource, find_user_names
from trajsmith.grounding.identity import UserIdentity
from trajsmith.records import FromUser, GoldCall

ANA, BO, CLEO = (
    {"name": "Ana Ruiz", "email": "ana@example.com"},
    {"name": "Bo Lind", "email": "bo@example.com"},
    {"name": "Cleo Vance", "email": "cleo@example.com"},
)
STATE = {
    "shop": {"now": "2026-09-09T16:20:00", "customers": {"C1": ANA, "C2": BO}},
    "bank": {"now": "2026-09-09T16:20:00", "people": {"P1": BO, "P2": CLEO, "P3": ANA}},
}
PATHS = ("shop.customers.*.name", "bank.people.*.name")


def look_up(person):
    source = {"email": FromUser(known="c0.email")}
    return GoldCall(tool="find", arguments={"email": person["email"]}, provenance=source, effect="read", result=person)


def test_users_of_several_environments_are_known_in_all_of_them():
    assert find_user_names(PATHS, STATE) == ["Ana Ruiz", "Bo Lind"]
    assert find_user_names(PATHS[:1], STATE) == ["Ana Ruiz", "Bo Lind"]
    assert find_user_names(("shop.owner.name", *PATHS), STATE | {"shop": {**STATE["shop"], "owner": BO}}) == ["Bo Lind"]


def test_environments_that_share_nobody_have_the_users_of_each():
    state = STATE | {"bank": {"people": {"P2": CLEO}}}
    assert find_user_names(PATHS, state) == ["Ana Ruiz", "Bo Lind", "Cleo Vance"]
    assert UserIdentity(PATHS, state).list_foreign_values([]) == frozenset()


def test_what_others_say_of_themselves_is_foreign_once_the_user_is_known():
    identity = UserIdentity(PATHS, STATE)
    assert identity.list_foreign_values([]) == {"Cleo Vance", "cleo@example.com"}
    assert identity.list_foreign_values([look_up(ANA)]) == {
        "Cleo Vance", "cleo@example.com", "Bo Lind", "bo@example.com",
    }  # fmt: skip
    assert identity.is_another(look_up(BO), [look_up(ANA)])
    assert UserIdentity(PATHS[:1], STATE["shop"]).list_foreign_values([look_up(ANA)]) == frozenset()


def test_dates_that_users_say_follow_the_clock_of_the_environments():
    assert ValueSource(STATE).now.isoformat() == "2026-09-09T16:20:00"
