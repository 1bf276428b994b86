"""The help desk: every rule of its policy binds, and a usual conversation goes through."""

from datetime import date, timedelta
from typing import Any

import pytest

from trajsmith.environments.library.helpdesk import Helpdesk
from trajsmith.environments.session import ToolResult


@pytest.fixture
def desk() -> Helpdesk:
    return Helpdesk(Helpdesk.seed_state("small", 1))


def first(table: dict[str, Any], **wanted: Any) -> Any:
    return next(row for row in table.values() if all(getattr(row, key) == value for key, value in wanted.items()))


def workday(desk: Helpdesk) -> date:
    days = (desk.state.now.date() + timedelta(days=number) for number in range(1, 8))
    return next(day for day in days if day.weekday() < 5)


def assert_refused(result: ToolResult, reason: str) -> None:
    assert not result.ok
    assert reason in result.content["error"]


def report(desk: Helpdesk, employee_id: str, impact: str = "one_person") -> ToolResult:
    problem = {"category": "network", "problem": "fails every few minutes", "impact": impact}
    return desk.call("open_ticket", {"employee_id": employee_id, **problem})


def test_priority_follows_from_impact_and_open_tickets_are_limited(desk: Helpdesk) -> None:
    employee_id = next(iter(desk.state.employees))
    made = [report(desk, employee_id, impact) for impact in ("minor", "one_team")]
    assert [result.content["priority"] for result in made] == ["low", "high"]
    while (result := report(desk, employee_id)).ok:
        pass
    assert_refused(result, "5 tickets are open already")


def test_outage_of_a_site_is_recorded_once(desk: Helpdesk) -> None:
    employee_id = next(iter(desk.state.employees))
    assert report(desk, employee_id, "whole_site").content["priority"] == "urgent"
    assert_refused(report(desk, employee_id, "whole_site"), "already recorded")
    assert report(desk, employee_id, "one_team").ok


def test_escalation_needs_a_passed_due_time_and_works_once(desk: Helpdesk) -> None:
    ticket_id = report(desk, next(iter(desk.state.employees))).content["ticket_id"]
    assert_refused(desk.call("escalate_ticket", {"ticket_id": ticket_id}), "only after its due time")
    desk.state.now += timedelta(days=4)
    result = desk.call("escalate_ticket", {"ticket_id": ticket_id})
    assert (result.content["team"], result.content["priority"]) == ("Second Line Support", "high")
    assert_refused(desk.call("escalate_ticket", {"ticket_id": ticket_id}), "already been escalated")


def test_only_freshly_resolved_tickets_are_reopened_and_at_most_twice(desk: Helpdesk) -> None:
    ticket = first(desk.state.tickets, status="resolved")
    arguments = {"ticket_id": ticket.ticket_id, "reason": "came_back"}
    ticket.resolved_at = desk.state.now - timedelta(days=15)
    assert_refused(desk.call("reopen_ticket", arguments), "more than 14 days ago")
    ticket.resolved_at = desk.state.now - timedelta(days=13)
    ticket.times_reopened = 2
    assert_refused(desk.call("reopen_ticket", arguments), "reopened 2 times already")
    ticket.times_reopened = 1
    assert desk.call("reopen_ticket", arguments).content["status"] == "in_progress"
    assert_refused(desk.call("reopen_ticket", arguments), "only resolved tickets can be reopened")


def test_closed_tickets_take_no_comments(desk: Helpdesk) -> None:
    ticket = next(iter(desk.state.tickets.values()))
    arguments = {"ticket_id": ticket.ticket_id, "comment": "Restarting did not help"}
    ticket.status = "waiting_for_reply"
    assert desk.call("add_comment", arguments).content["status"] == "in_progress"
    ticket.status = "closed"
    assert_refused(desk.call("add_comment", arguments), "takes no more comments")


@pytest.mark.parametrize(
    ("reason", "refusal"), [("worn_out", "worn out after 4 years"), ("broken", "so it is repaired")]
)
def test_device_must_be_old_or_out_of_warranty(desk: Helpdesk, reason: str, refusal: str) -> None:
    device = first(desk.state.devices, kind="laptop")
    today = desk.state.now.date()
    arguments = {"device_id": device.device_id, "reason": reason, "collect_on": workday(desk).isoformat()}
    device.purchased_on, device.warranty_until = today - timedelta(days=400), today + timedelta(days=695)
    assert_refused(desk.call("order_replacement", arguments), refusal)
    device.purchased_on, device.warranty_until = today - timedelta(days=1500), today - timedelta(days=405)
    assert desk.call("order_replacement", arguments).ok
    assert_refused(desk.call("order_replacement", arguments), "already on its way")


def test_collection_is_on_a_workday_of_the_next_month(desk: Helpdesk) -> None:
    device = first(desk.state.devices, kind="laptop")
    day = workday(desk)
    saturday = day + timedelta(days=5 - day.weekday())
    reasons = {saturday: "is a Saturday", **{day + timedelta(days=n): "within the next 30 days" for n in (35, -7)}}
    for wrong, reason in reasons.items():
        arguments = {"device_id": device.device_id, "reason": "lost_or_stolen", "collect_on": wrong.isoformat()}
        assert_refused(desk.call("order_replacement", arguments), reason)


def test_licence_needs_a_seat_and_is_given_once(desk: Helpdesk) -> None:
    employee_id = next(iter(desk.state.employees))
    software = next(iter(desk.state.software.values()))
    desk.state.licences.clear()
    arguments = {"employee_id": employee_id, "software_id": software.software_id}
    software.seats = 0
    assert_refused(desk.call("request_licence", arguments), "seats of")
    software.seats = 1
    assert desk.call("request_licence", arguments).content["free_seats_left"] == 0
    assert_refused(desk.call("request_licence", arguments), "has a licence")


def test_expensive_licences_wait_for_the_manager_unless_there_is_none(desk: Helpdesk) -> None:
    software = next(iter(desk.state.software.values()))
    software.seats = 20
    desk.state.licences.clear()
    head = first(desk.state.employees, manager_id=None)
    other = next(employee for employee in desk.state.employees.values() if employee.manager_id)
    found = []
    for employee, cost in ((head, 31.0), (other, 31.0)):
        software.monthly_cost = cost
        arguments = {"employee_id": employee.employee_id, "software_id": software.software_id}
        found.append(desk.call("request_licence", arguments).content["status"])
    assert found == ["active", "awaiting_approval"]


def test_access_is_limited_by_department_time_and_number(desk: Helpdesk) -> None:
    employee = next(employee for employee in desk.state.employees.values() if employee.manager_id)
    desk.state.access_requests.clear()
    today = desk.state.now.date()
    arguments = {"employee_id": employee.employee_id, "system": "payroll", "until": str(today + timedelta(days=91))}
    last = today + timedelta(days=90)
    assert_refused(desk.call("request_access", arguments), f"access lasts 90 days at most, until {last}")
    assert_refused(desk.call("request_access", {**arguments, "until": str(today)}), "tomorrow at the earliest")
    arguments["until"] = str(today + timedelta(days=90))
    employee.department = "Sales"
    assert_refused(desk.call("request_access", arguments), "only for Finance and Human Resources")
    employee.department = "Finance"
    assert desk.call("request_access", arguments).content["status"] == "pending"
    assert_refused(desk.call("request_access", arguments), "already a pending request")


def test_only_pending_requests_are_withdrawn(desk: Helpdesk) -> None:
    request = first(desk.state.access_requests, status="pending")
    arguments = {"request_id": request.request_id}
    assert desk.call("withdraw_access_request", arguments).content["status"] == "withdrawn"
    assert_refused(desk.call("withdraw_access_request", arguments), "only pending requests")


def test_employee_sorts_out_a_bad_week(desk: Helpdesk) -> None:
    email = first(desk.state.employees, manager_id=None).email
    employee_id = desk.call("find_employee_by_email", {"email": email.upper()}).content["employee_id"]
    resolved = desk.call("list_tickets", {"employee_id": employee_id, "status": "resolved"}).content["result"][-1]
    again = desk.call("reopen_ticket", {"ticket_id": resolved["ticket_id"], "reason": "never_fixed"})
    assert again.content["comments"][-1]["text"] == "Reopened: never fixed"
    guide = desk.call("search_articles", {"topic": "printing"}).content["result"][0]
    assert len(desk.call("get_article", {"article_id": guide["article_id"]}).content["steps"]) == 3
    laptop = desk.call("list_devices", {"employee_id": employee_id}).content["result"][0]
    day = workday(desk).isoformat()
    arguments = {"device_id": laptop["device_id"], "reason": "lost_or_stolen", "collect_on": day}
    assert desk.call("order_replacement", arguments).content["old_model"] == laptop["model"]
    assert desk.state.devices[laptop["device_id"]].status == "reported_lost"


@pytest.mark.parametrize(("size", "seed"), [("small", 1), ("small", 2), ("medium", 3), ("large", 1)])
def test_seed_states_keep_the_rules(size: str, seed: int) -> None:
    state = Helpdesk.seed_state(size, seed)
    for ticket in state.tickets.values():
        assert ticket.employee_id in state.employees and ticket.team_id in state.teams
        assert (ticket.resolved_at is not None) == (ticket.status in ("resolved", "closed"))
        assert ticket.opened_at < (ticket.resolved_at or state.now) <= state.now
    for comment in state.comments.values():
        assert state.tickets[comment.ticket_id].opened_at < comment.posted_at <= state.now
    for software in state.software.values():
        assert sum(licence.software_id == software.software_id for licence in state.licences.values()) <= software.seats
    for request in state.access_requests.values():
        departments = state.systems[request.system].departments
        assert not departments or state.employees[request.employee_id].department in departments
        assert 0 < (request.until - request.requested_at.date()).days <= 90
    replaced = {made.device_id for made in state.replacements.values()}
    assert replaced == {device.device_id for device in state.devices.values() if device.status != "in_use"}
    assert all(made.collect_on > state.now.date() for made in state.replacements.values())
