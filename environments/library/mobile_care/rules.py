"""The rules of customer care: finding what the caller may touch, and refusing what the policy forbids."""

from calendar import monthrange
from collections.abc import Mapping
from datetime import date, timedelta

from trajsmith.environments.library.mobile_care.results import RouterDisplay
from trajsmith.environments.library.mobile_care.state import (
    AddOn,
    Booking,
    Customer,
    Line,
    MobileCareState,
    Plan,
    Router,
    SimCard,
    StatusLight,
    TimeWindow,
)
from trajsmith.records import ToolError

ADD_ONS_PER_LINE = 3
LIGHTS: Mapping[str, tuple[StatusLight, str]] = {
    "none": ("solid_green", "G"),
    "stuck": ("blinking_amber", "B"),
    "settings": ("solid_amber", "S"),
    "cable": ("blinking_red", "R"),
}
"""By the router's true fault: its light, and the letter of the code on its display."""


def add_months(day: date, months: int) -> date:
    """Return the same day so many months later, or the last day of a month that is shorter."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def own_account(state: MobileCareState, customer_id: str) -> Customer:
    """The account, if it is the caller's."""
    customer = state.customers.get(customer_id)
    if customer is None:
        raise ToolError(f"account not found: {customer_id}")
    if customer_id != state.user_id:
        raise ToolError("only the caller's own account may be opened")
    return customer


def own_line(state: MobileCareState, line_id: str) -> Line:
    """The line, if it is the caller's."""
    line = state.lines.get(line_id)
    if line is None:
        raise ToolError(f"line not found: {line_id}")
    own_account(state, line.customer_id)
    return line


def sent_sim(state: MobileCareState, serial: str) -> SimCard:
    """The SIM with this serial number, if it was sent to the caller and waits for its activation."""
    sim = state.sim_cards.get(serial.replace(" ", ""))
    if sim is None or sim.customer_id != state.user_id:
        raise ToolError("no SIM with this serial number was sent to this account")
    if sim.status != "sent":
        raise ToolError(f"this SIM is {sim.status.replace('_', ' ')} already, and only a new one can be activated")
    return sim


def render_router_display(router: Router) -> RouterDisplay:
    """Describe the router's lights as a person sees them."""
    light, letter = LIGHTS[router.fault]
    return RouterDisplay(router_model=router.model, status_light=light, display_code=f"{letter}-{router.marking}")


def router_by_code(state: MobileCareState, customer_id: str, display_code: str) -> Router:
    """The caller's router, if the code is the one that it shows now."""
    own_account(state, customer_id)
    router = state.routers[customer_id]
    if display_code.strip().upper() != render_router_display(router).display_code:
        raise ToolError("this code does not match what the network sees; please have the display read again")
    return router


def running_bookings(state: MobileCareState, line_id: str) -> list[Booking]:
    """Add-ons of a line that run today or start later."""
    today = state.now.date()
    return [each for each in state.bookings.values() if each.line_id == line_id and each.valid_until >= today]


def _check_no_overdue(state: MobileCareState, customer_id: str) -> None:
    for invoice in state.invoices.values():
        if invoice.customer_id == customer_id and invoice.status == "overdue":
            raise ToolError(f"the bill of {invoice.period} is overdue, and no plan or add-on can be booked while it is")


def check_plan_change(state: MobileCareState, line: Line, old: Plan, new: Plan) -> None:
    """Rules 2 and 3."""
    today = state.now.date()
    _check_no_overdue(state, line.customer_id)
    if line.status != "active":
        raise ToolError(f"the {line.label} line is {line.status}, and its plan cannot be changed while it is")
    if old.plan_id == new.plan_id:
        raise ToolError(f"the line is already on the {new.name} plan")
    if not new.on_sale:
        raise ToolError(f"the {new.name} plan is no longer on sale")
    if today - line.plan_since < timedelta(days=30):
        raise ToolError(f"the plan was changed on {line.plan_since}, and it can change only once in 30 days")
    if today < line.term_ends and new.monthly_price < old.monthly_price:
        raise ToolError(f"the minimum term runs until {line.term_ends}, and a cheaper plan is not possible before that")


def check_add_on(state: MobileCareState, line: Line, add_on: AddOn) -> None:
    """Rules 2 and 5."""
    _check_no_overdue(state, line.customer_id)
    plan = state.plans[line.plan_id]
    booked = running_bookings(state, line.line_id)
    if line.status != "active":
        raise ToolError(f"the {line.label} line is {line.status}, and it cannot take add-ons while it is")
    if any(each.add_on_id == add_on.add_on_id for each in booked):
        raise ToolError(f"{add_on.name} is already booked for this line")
    if len(booked) >= ADD_ONS_PER_LINE:
        raise ToolError(f"a line can have at most {ADD_ONS_PER_LINE} add-ons at a time")
    if add_on.kind == "data" and plan.data_gb is None:
        raise ToolError(f"the {plan.name} plan has unlimited data and takes no data add-on")
    if add_on.kind == "roaming" and plan.roaming_included:
        raise ToolError(f"the {plan.name} plan already includes roaming")


def check_visit(state: MobileCareState, router: Router) -> None:
    """Rule 8, what must be so before a technician is sent."""
    if router.fault == "none":
        raise ToolError("the router's light is solid green, so no technician is needed")
    if router.restarted_at is None or router.restarted_at.date() != state.now.date():
        raise ToolError("the router has not been restarted today; please have the customer restart it first")
    city = state.customers[router.customer_id].address.city
    for outage in state.outages.values():
        if outage.city == city and outage.service == "home_internet" and outage.status == "ongoing":
            raise ToolError(f"an outage of home internet is going on in {city}, and no technician comes until it ends")
    for visit in state.visits.values():
        if visit.customer_id == router.customer_id and visit.status == "booked":
            raise ToolError(f"a visit is already booked for {visit.scheduled_for}")


def check_visit_day(state: MobileCareState, day: date, window: TimeWindow) -> None:
    """Rule 8, when a technician can come."""
    today = state.now.date()
    if not today < day <= today + timedelta(days=30):
        raise ToolError("visits are possible from tomorrow to 30 days ahead")
    if day.weekday() == 6:
        raise ToolError("technicians do not come on Sundays")
    if day.weekday() == 5 and window != "morning":
        raise ToolError("on Saturdays technicians come in the morning only")
