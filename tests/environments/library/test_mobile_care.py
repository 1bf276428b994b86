"""The rules of the mobile care environment bind, and the customer's own tools work together with the agent's."""

from datetime import timedelta

import pytest

from trajsmith.environments.library.mobile_care import MobileCare
from trajsmith.environments.library.mobile_care.state import Line, Plan
from trajsmith.records import JsonObject


@pytest.fixture
def care() -> MobileCare:
    """A caller with a faulty router, active lines without add-ons, no minimum term, and no bill overdue."""
    env = MobileCare(MobileCare.seed_state("small", 1))
    state = env.state
    state.bookings.clear()
    state.outages.clear()
    router = state.routers[state.user_id]
    router.fault, router.restarted_at = "cable", None
    for line in lines(env):
        line.status, line.plan_id, line.plan_since = "active", "PL02", state.now.date() - timedelta(days=90)
        line.term_ends = state.now.date() - timedelta(days=1)
    for invoice in state.invoices.values():
        invoice.status = "paid" if invoice.status == "overdue" else invoice.status
    return env


def lines(env: MobileCare) -> list[Line]:
    return [line for line in env.state.lines.values() if line.customer_id == env.state.user_id]


def plan(env: MobileCare, name: str) -> Plan:
    return next(each for each in env.state.plans.values() if each.name == name)


def to_plan(env: MobileCare, line: Line, name: str) -> JsonObject:
    return {"line_id": line.line_id, "plan_id": plan(env, name).plan_id}


def refused(env: MobileCare, tool: str, arguments: JsonObject, reason: str) -> None:
    before = env.dump()
    result = env.call(tool, arguments)
    assert not result.ok
    assert reason in str(result.content)
    assert env.dump() == before


def done(env: MobileCare, tool: str, arguments: JsonObject, user: bool = False) -> JsonObject:
    result = env.call(tool, arguments, "user" if user else "assistant")
    assert result.ok, result.content
    return result.content


def test_only_the_callers_account_is_opened(care: MobileCare) -> None:
    stranger = next(each for each in care.state.customers.values() if each.customer_id != care.state.user_id)
    refused(care, "find_account_by_phone", {"phone_number": stranger.contact_number}, "please call from the number")
    refused(care, "list_lines", {"customer_id": stranger.customer_id}, "only the caller's own account")
    foreign = next(each for each in care.state.lines.values() if each.customer_id != care.state.user_id)
    refused(care, "get_data_usage", {"line_id": foreign.line_id}, "only the caller's own account")
    own = done(care, "find_account_by_phone", {"phone_number": care.state.caller.phone_number})
    assert own["customer_id"] == care.state.user_id


def test_overdue_bill_blocks_changes_until_it_is_extended_once(care: MobileCare) -> None:
    line, state = lines(care)[0], care.state
    bill = next(each for each in state.invoices.values() if each.customer_id == state.user_id and each.status == "open")
    bill.status, bill.due_on = "overdue", state.now.date() - timedelta(days=3)
    change = to_plan(care, line, "Meadow")
    refused(care, "change_plan", change, "overdue")
    refused(care, "book_add_on", {"line_id": line.line_id, "add_on_id": "AO06"}, "overdue")
    refused(care, "extend_due_date", {"invoice_id": bill.invoice_id, "extra_days": 15}, "at most 14 days")
    extended = done(care, "extend_due_date", {"invoice_id": bill.invoice_id, "extra_days": 7})
    assert extended["due_on"] == (state.now.date() + timedelta(days=7)).isoformat()
    refused(care, "extend_due_date", {"invoice_id": bill.invoice_id, "extra_days": 2}, "already extended")
    assert done(care, "change_plan", change)["plan_name"] == "Meadow"


def test_plan_changes_keep_to_the_term_the_sale_and_thirty_days(care: MobileCare) -> None:
    line = lines(care)[0]
    line.term_ends = care.state.now.date() + timedelta(days=5)
    refused(care, "change_plan", to_plan(care, line, "Pebble"), "minimum term")
    refused(care, "change_plan", to_plan(care, line, "Evergreen"), "no longer on sale")
    assert done(care, "change_plan", to_plan(care, line, "Summit"))["old_plan"] == "Brook"
    refused(care, "change_plan", to_plan(care, line, "Horizon"), "once in 30 days")
    other = lines(care)[1]
    other.status = "suspended"
    refused(care, "change_plan", to_plan(care, other, "Summit"), "suspended")


def test_add_ons_fit_the_plan_and_are_limited(care: MobileCare) -> None:
    line, other = lines(care)[:2]
    for add_on in ("AO01", "AO02", "AO04"):
        done(care, "book_add_on", {"line_id": line.line_id, "add_on_id": add_on})
    refused(care, "book_add_on", {"line_id": line.line_id, "add_on_id": "AO01"}, "already booked")
    refused(care, "book_add_on", {"line_id": line.line_id, "add_on_id": "AO03"}, "at most 3 add-ons")
    late = (care.state.now.date() + timedelta(days=31)).isoformat()
    late_start = {"line_id": other.line_id, "add_on_id": "AO06", "start_date": late}
    refused(care, "book_add_on", late_start, "within the next 30 days")
    other.plan_id = plan(care, "Horizon").plan_id
    refused(care, "book_add_on", {"line_id": other.line_id, "add_on_id": "AO01"}, "unlimited data")
    refused(care, "book_add_on", {"line_id": other.line_id, "add_on_id": "AO05"}, "already includes roaming")
    assert done(care, "book_add_on", {"line_id": other.line_id, "add_on_id": "AO07"})["name"] == "Worldwide Minutes"


def test_new_sim_works_after_activation_and_airplane_mode(care: MobileCare) -> None:
    line, phone = lines(care)[0], care.state.phones[care.state.user_id]
    phone.built_in_sim, phone.network, phone.signal_bars = False, "no_service", 0
    old = next(sim.serial for sim in care.state.sim_cards.values() if sim.line_id == line.line_id)
    refused(care, "activate_sim", {"line_id": line.line_id, "sim_serial": old}, "in use already")
    refused(care, "activate_sim", {"line_id": line.line_id, "sim_serial": "8944000"}, "no SIM with this serial number")
    assert done(care, "toggle_airplane_mode", {}, user=True)["network"] == "no_service"
    serial = done(care, "read_sim_serial", {}, user=True)["sim_serial"]
    line.status = "suspended"
    refused(care, "activate_sim", {"line_id": line.line_id, "sim_serial": serial}, "a SIM goes on an active line only")
    line.status = "active"
    assert done(care, "activate_sim", {"line_id": line.line_id, "sim_serial": serial})["old_sims_retired"] == 1
    assert done(care, "run_speed_test", {"connection": "mobile"}, user=True)["download_mbps"] == 0
    assert done(care, "toggle_airplane_mode", {}, user=True)["network"] == phone.coverage
    assert done(care, "run_speed_test", {"connection": "mobile"}, user=True)["download_mbps"] > 0


def test_router_settings_need_the_code_that_is_shown_now(care: MobileCare) -> None:
    router = care.state.routers[care.state.user_id]
    router.fault = "settings"
    shown = done(care, "read_router_light", {}, user=True)
    call = {"customer_id": care.state.user_id, "display_code": shown["display_code"]}
    refused(care, "resend_router_settings", {**call, "display_code": "Z-1"}, "does not match what the network sees")
    assert done(care, "resend_router_settings", call)["wifi_name"] == router.wifi_name
    refused(care, "resend_router_settings", call, "does not match what the network sees")
    after = done(care, "read_router_light", {}, user=True)
    assert after["status_light"] == "solid_green"
    call["display_code"] = after["display_code"]
    refused(care, "resend_router_settings", call, "already sent to this router today")
    router.settings_sent_at = None
    refused(care, "resend_router_settings", call, "solid green")


def test_technician_comes_only_after_a_restart_and_without_an_outage(care: MobileCare) -> None:
    state = care.state
    sunday = state.now.date() + timedelta(days=7 + 6 - state.now.weekday())
    monday = (sunday + timedelta(days=1)).isoformat()
    visit = {"customer_id": state.user_id, "visit_date": monday, "time_window": "evening"}
    visit["display_code"] = done(care, "read_router_light", {}, user=True)["display_code"]
    refused(care, "book_technician", visit, "has not been restarted today")
    assert done(care, "restart_router", {}, user=True)["status_light"] == "blinking_red"
    refused(care, "book_technician", {**visit, "visit_date": sunday.isoformat()}, "Sundays")
    saturday = (sunday - timedelta(days=1)).isoformat()
    refused(care, "book_technician", {**visit, "visit_date": saturday}, "in the morning only")
    today = state.now.date().isoformat()
    refused(care, "book_technician", {**visit, "visit_date": today}, "from tomorrow to 30 days ahead")
    seeded = MobileCare.seed_state("small", 1).outages
    outage = next(iter(seeded.values())).model_copy(
        update={"city": state.customers[state.user_id].address.city, "service": "home_internet", "status": "ongoing"}
    )
    state.outages[outage.outage_id] = outage
    refused(care, "book_technician", visit, "outage of home internet")
    outage.status = "resolved"
    assert done(care, "book_technician", visit)["status"] == "booked"
    refused(care, "book_technician", visit, "already booked")


def test_no_outage_goes_on_of_what_works_at_the_callers_place() -> None:
    """Airplane mode and new settings bring a connection back, which no outage in the same town allows."""
    for seed in range(40):
        state = MobileCare.seed_state("small", seed)
        home = state.customers[state.user_id].address.city
        out = {each.service for each in state.outages.values() if each.city == home and each.status == "ongoing"}
        assert not out or (out == {"home_internet"} and state.routers[state.user_id].fault == "cable"), seed


def test_tools_of_the_user_are_not_the_agents(care: MobileCare) -> None:
    result = care.call("restart_router", {})
    assert not result.ok
    assert "unknown tool" in str(result.content)


def test_restart_heals_a_stuck_router_and_then_nobody_needs_to_come(care: MobileCare) -> None:
    care.state.routers[care.state.user_id].fault = "stuck"
    shown = done(care, "restart_router", {}, user=True)
    assert shown["status_light"] == "solid_green"
    tomorrow = (care.state.now.date() + timedelta(days=1)).isoformat()
    visit = {"visit_date": tomorrow, "time_window": "morning", "display_code": shown["display_code"]}
    refused(care, "book_technician", {"customer_id": care.state.user_id, **visit}, "no technician is needed")


@pytest.mark.parametrize("seed", range(1, 7))
def test_seed_states_are_consistent_and_keep_the_rules(seed: int) -> None:
    state = MobileCare.seed_state("small", seed)
    assert state == MobileCare.seed_state("small", seed)
    assert state.customers[state.user_id].contact_number == state.caller.phone_number
    tray = state.sim_cards[state.phones[state.user_id].tray_serial]
    assert (tray.customer_id, tray.status) == (state.user_id, "sent")
    assert all(line.customer_id in state.customers and line.plan_id in state.plans for line in state.lines.values())
    assert all(sim.line_id is None or sim.line_id in state.lines for sim in state.sim_cards.values())
    assert all((bill.due_on < state.now.date()) >= (bill.status == "overdue") for bill in state.invoices.values())
    assert all(bill.status != "open" or bill.due_on >= state.now.date() for bill in state.invoices.values())
