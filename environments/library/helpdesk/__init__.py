"""IT help desk of a company."""

from datetime import date, datetime, timedelta
from typing import Annotated

from pydantic import Field

from trajsmith.environments.library.helpdesk.seeds import EXAMPLE_COMMENTS, EXAMPLE_PROBLEMS, make_state
from trajsmith.environments.library.helpdesk.state import (
    HOURS_TO_FIX,
    NEW_MODELS,
    NEXT_PRIORITY,
    PRIORITY_OF,
    SECOND_LINE,
    AccessRequest,
    AccessRow,
    Article,
    ArticleRow,
    Category,
    Comment,
    CommentLine,
    Device,
    Employee,
    EmployeeCard,
    HelpdeskState,
    Impact,
    Licence,
    LicenceResult,
    Priority,
    Purpose,
    ReopenReason,
    Replacement,
    ReplacementResult,
    ReplaceReason,
    SoftwareRow,
    SystemName,
    Ticket,
    TicketDetail,
    TicketRow,
    TicketStatus,
)
from trajsmith.environments.native import Environment, tool
from trajsmith.records import ConfirmationRule, ToolError

OPEN = ("new", "in_progress", "waiting_for_reply")
MAX_OPEN_TICKETS = 5
REOPEN_DAYS = 14
MAX_REOPENED = 2
YEARS_TO_REPLACE = {"laptop": 4, "phone": 3, "monitor": 6}
FREE_OF_APPROVAL = 30.0
MAX_ACCESS_DAYS = 90


class Helpdesk(Environment[HelpdeskState]):
    """IT help desk of a company: tickets, devices, software licences, system access and self-help articles."""

    domain = "workplace/it_helpdesk"
    policy = """
    # Rules of the help desk

    1. The priority of a ticket follows from its impact: minor trouble is low, one person normal, one team high, a whole
       site urgent. Nobody has more than 5 open tickets, and the outage of a site is recorded only once.
    2. A ticket can be escalated once, while it is not resolved, and only if its due time has passed or its priority is
       high or urgent. It goes to Second Line Support and its priority rises by one step.
    3. A ticket can be reopened within 14 days after it was resolved, at most twice. Closed tickets stay closed and take
       no comments. A comment on a ticket that waits for a reply sets it in progress again.
    4. A worn-out device is replaced only from a certain age (laptop 4 years, phone 3, monitor 6); a broken one only if
       its warranty is over, otherwise it is repaired; a lost or stolen one always. One replacement per device
       at a time. New devices are collected on a workday within the next 30 days.
    5. A software licence needs a free seat and is given once per person. Above 30 pounds a month the manager must
       approve; the seat is kept meanwhile.
    6. Access to a system ends after 90 days at most. Some systems are only for certain departments, and some need
       the manager's approval. There is one pending or granted access per person and system.
    7. Only pending access requests can be withdrawn.
    8. Employees without a manager need no approval.
    """

    @classmethod
    def seed_state(cls, size: str, seed: int) -> HelpdeskState:
        return make_state(size, seed)

    @tool(effect="read")
    def find_employee_by_email(self, email: str) -> EmployeeCard:
        """Find the employee who has a work email address.

        Args:
            email: Work email address.
        """
        for employee in self.state.employees.values():
            if employee.email == email.strip().lower():
                return EmployeeCard(
                    employee_id=employee.employee_id,
                    name=employee.name,
                    department=employee.department,
                    site=employee.site,
                    manager_name=self._manager(employee.employee_id),
                )
        raise ToolError(f"no employee with email {email}")

    @tool(effect="read")
    def list_tickets(self, employee_id: str, status: TicketStatus | None = None) -> list[TicketRow]:
        """List the tickets of an employee, newest first, at most 8.

        Args:
            employee_id: Employee who reported them.
            status: Only tickets in this status.
        """
        self.lookup(self.state.employees, employee_id, "employee")
        tickets = [ticket for ticket in self._tickets_of(employee_id) if status in (None, ticket.status)]
        return [
            TicketRow(
                ticket_id=ticket.ticket_id,
                title=ticket.title,
                status=ticket.status,
                priority=ticket.priority,
                opened_on=ticket.opened_at.date(),
            )
            for ticket in sorted(tickets, key=lambda ticket: (ticket.opened_at, ticket.ticket_id), reverse=True)[:8]
        ]

    @tool(effect="read")
    def get_ticket(self, ticket_id: str) -> TicketDetail:
        """Show a ticket with its team, due time and its latest comments, at most 3.

        Args:
            ticket_id: Ticket number, for example "INC4101".
        """
        return self._detail(self.lookup(self.state.tickets, ticket_id, "ticket"))

    @tool(
        effect="write",
        confirm=ConfirmationRule(
            arguments={"impact": ("whole_site",)}, because="an outage of a whole site calls the team out at once"
        ),
    )
    def open_ticket(
        self,
        employee_id: str,
        category: Category,
        problem: Annotated[str, Field(min_length=5, max_length=120, examples=[*EXAMPLE_PROBLEMS])],
        impact: Impact,
    ) -> TicketDetail:
        """Report a problem; the priority follows from the impact.

        Args:
            employee_id: Employee who reports it.
            category: What the problem is with.
            problem: What is wrong, in a few words.
            impact: How many people are held up.
        """
        employee = self.lookup(self.state.employees, employee_id, "employee")
        self._check_new_ticket(employee, category, impact)
        priority = PRIORITY_OF[impact]
        team = next(team for team in self.state.teams.values() if category in team.handles)
        ticket = Ticket(
            ticket_id=self.new_id("ticket", "INC{:d}"),
            employee_id=employee_id,
            team_id=team.team_id,
            title=f"{category.capitalize()}: {problem}",
            category=category,
            impact=impact,
            priority=priority,
            status="new",
            opened_at=self.state.now,
            due_at=self._due(priority),
            resolved_at=None,
            escalated=False,
            times_reopened=0,
        )
        self.state.tickets[ticket.ticket_id] = ticket
        return self._detail(ticket)

    @tool(effect="write", confirm="never")
    def add_comment(
        self, ticket_id: str, comment: Annotated[str, Field(min_length=3, max_length=300, examples=[*EXAMPLE_COMMENTS])]
    ) -> TicketDetail:
        """Add a comment of the employee to their ticket.

        Args:
            ticket_id: Ticket number.
            comment: Text of the comment.
        """
        ticket = self.lookup(self.state.tickets, ticket_id, "ticket")
        if ticket.status == "closed":
            raise ToolError(f"ticket {ticket_id} is closed and takes no more comments")
        self._comment(ticket, comment)
        if ticket.status == "waiting_for_reply":
            ticket.status = "in_progress"
        return self._detail(ticket)

    @tool(effect="write", confirm=ConfirmationRule(always=True, because="a ticket can be escalated only once"))
    def escalate_ticket(self, ticket_id: str) -> TicketDetail:
        """Hand an overdue or important ticket to Second Line Support and raise its priority.

        Args:
            ticket_id: Ticket number.
        """
        ticket = self.lookup(self.state.tickets, ticket_id, "ticket")
        if ticket.status not in OPEN:
            raise ToolError(f"ticket {ticket_id} is {ticket.status}, and only open tickets can be escalated")
        if ticket.escalated:
            raise ToolError(f"ticket {ticket_id} has already been escalated")
        if ticket.due_at >= self.state.now and ticket.priority not in ("high", "urgent"):
            raise ToolError(
                f"ticket {ticket_id} has {ticket.priority} priority, so it can be escalated only after its due time, "
                f"{ticket.due_at:%Y-%m-%dT%H:%M}"
            )
        ticket.escalated = True
        ticket.team_id = SECOND_LINE
        ticket.priority = NEXT_PRIORITY[ticket.priority]
        ticket.due_at = self._due(ticket.priority)
        return self._detail(ticket)

    @tool(effect="write", confirm="never")
    def reopen_ticket(self, ticket_id: str, reason: ReopenReason) -> TicketDetail:
        """Reopen a ticket that was resolved a short time ago.

        Args:
            ticket_id: Ticket number.
            reason: Why the solution did not do.
        """
        ticket = self.lookup(self.state.tickets, ticket_id, "ticket")
        if ticket.status != "resolved" or ticket.resolved_at is None:
            raise ToolError(f"ticket {ticket_id} is {ticket.status}, and only resolved tickets can be reopened")
        if self.state.now - ticket.resolved_at > timedelta(days=REOPEN_DAYS):
            raise ToolError(
                f"ticket {ticket_id} was resolved more than {REOPEN_DAYS} days ago, so a new ticket is needed"
            )
        if ticket.times_reopened >= MAX_REOPENED:
            raise ToolError(
                f"ticket {ticket_id} has been reopened {MAX_REOPENED} times already, so a new ticket is needed"
            )
        ticket.status = "in_progress"
        ticket.resolved_at = None
        ticket.times_reopened += 1
        ticket.due_at = self._due(ticket.priority)
        self._comment(ticket, f"Reopened: {reason.replace('_', ' ')}")
        return self._detail(ticket)

    @tool(effect="read")
    def list_devices(self, employee_id: str) -> list[Device]:
        """List the devices that an employee has from the company, oldest first.

        Args:
            employee_id: Employee who uses them.
        """
        self.lookup(self.state.employees, employee_id, "employee")
        devices = [device for device in self.state.devices.values() if device.employee_id == employee_id]
        return sorted(devices, key=lambda device: (device.purchased_on, device.device_id))

    @tool(
        effect="write",
        confirm=ConfirmationRule(always=True, because="the order stands and the old device is taken out of use"),
    )
    def order_replacement(self, device_id: str, reason: ReplaceReason, collect_on: date) -> ReplacementResult:
        """Order a new device in place of one that is worn out or broken or lost.

        Args:
            device_id: Device to replace.
            reason: Why it is replaced.
            collect_on: Workday on which the employee collects the new device at their site.
        """
        device = self.lookup(self.state.devices, device_id, "device")
        self._check_replaceable(device, reason)
        days = (collect_on - self.state.now.date()).days
        if not 1 <= days <= 30:
            raise ToolError(f"{collect_on} is not within the next 30 days, when new devices can be collected")
        if collect_on.weekday() > 4:
            raise ToolError(f"{collect_on} is a {collect_on:%A}, and new devices are collected on workdays")
        device.status = "reported_lost" if reason == "lost_or_stolen" else "being_replaced"
        replacement = Replacement(
            replacement_id=self.new_id("replacement", "RPL{:d}"),
            device_id=device_id,
            reason=reason,
            new_model=NEW_MODELS[device.kind],
            collect_on=collect_on,
        )
        self.state.replacements[replacement.replacement_id] = replacement
        return ReplacementResult(
            replacement_id=replacement.replacement_id,
            old_model=device.model,
            new_model=replacement.new_model,
            collect_on=collect_on,
            site=self.state.employees[device.employee_id].site,
        )

    @tool(effect="read")
    def search_articles(self, topic: Category) -> list[ArticleRow]:
        """List the self-help articles about a topic, shortest first, at most 8.

        Args:
            topic: What the article should be about.
        """
        articles = [article for article in self.state.articles.values() if article.topic == topic]
        return [
            ArticleRow(
                article_id=article.article_id,
                title=article.title,
                minutes=article.minutes,
                updated_on=article.updated_on,
            )
            for article in sorted(articles, key=lambda article: (article.minutes, article.title))[:8]
        ]

    @tool(effect="read")
    def get_article(self, article_id: str) -> Article:
        """Show a self-help article with its steps.

        Args:
            article_id: Article number.
        """
        return self.lookup(self.state.articles, article_id, "article")

    @tool(effect="read")
    def search_software(self, purpose: Purpose, free_seats_only: bool = False) -> list[SoftwareRow]:
        """List the software that employees can have, cheapest first, at most 8 products.

        Args:
            purpose: What the software is for.
            free_seats_only: Leave out software without a free seat.
        """
        rows = [
            SoftwareRow(
                software_id=software.software_id,
                name=software.name,
                monthly_cost=software.monthly_cost,
                free_seats=self._free_seats(software.software_id),
                needs_approval=software.monthly_cost > FREE_OF_APPROVAL,
            )
            for software in self.state.software.values()
            if software.purpose == purpose
        ]
        rows = [row for row in rows if row.free_seats or not free_seats_only]
        return sorted(rows, key=lambda row: (row.monthly_cost, row.name))[:8]

    @tool(
        effect="write",
        confirm=ConfirmationRule(
            shown={"needs_approval": (True,)}, because="it costs more than 30 pounds a month and the manager is asked"
        ),
    )
    def request_licence(self, employee_id: str, software_id: str) -> LicenceResult:
        """Ask for a licence of a software; it is active at once unless the manager must approve.

        Args:
            employee_id: Employee who gets the licence.
            software_id: Software to use.
        """
        self.lookup(self.state.employees, employee_id, "employee")
        software = self.lookup(self.state.software, software_id, "software")
        for licence in self.state.licences.values():
            if licence.software_id == software_id and licence.employee_id == employee_id:
                state = "has" if licence.status == "active" else "has already asked for"
                raise ToolError(f"the employee {state} a licence of {software.name}")
        if self._free_seats(software_id) < 1:
            raise ToolError(f"all {software.seats} seats of {software.name} are taken")
        approver = self._manager(employee_id) if software.monthly_cost > FREE_OF_APPROVAL else None
        requested = Licence(
            licence_id=self.new_id("licence", "LIC{:d}"),
            software_id=software_id,
            employee_id=employee_id,
            status="awaiting_approval" if approver else "active",
            assigned_on=self.state.now.date(),
        )
        self.state.licences[requested.licence_id] = requested
        return LicenceResult(
            licence_id=requested.licence_id,
            software_name=software.name,
            status=requested.status,
            approver_name=approver,
            free_seats_left=self._free_seats(software_id),
        )

    @tool(effect="read")
    def list_access_requests(self, employee_id: str) -> list[AccessRow]:
        """List an employee's requests for access to systems, newest first, at most 8.

        Args:
            employee_id: Employee who asked.
        """
        self.lookup(self.state.employees, employee_id, "employee")
        requests = [request for request in self.state.access_requests.values() if request.employee_id == employee_id]
        requests.sort(key=lambda request: (request.requested_at, request.request_id), reverse=True)
        return [self._access(request) for request in requests[:8]]

    @tool(effect="write", confirm="never")
    def request_access(self, employee_id: str, system: SystemName, until: date) -> AccessRow:
        """Ask for access to a system; it is granted at once unless the manager must approve.

        Args:
            employee_id: Employee who needs access.
            system: System to use.
            until: Last day of the access.
        """
        employee = self.lookup(self.state.employees, employee_id, "employee")
        self._check_access(employee, system, until)
        pending = self.state.systems[system].needs_approval and employee.manager_id is not None
        request = AccessRequest(
            request_id=self.new_id("request", "REQ{:d}"),
            employee_id=employee_id,
            system=system,
            status="pending" if pending else "granted",
            requested_at=self.state.now,
            until=until,
        )
        self.state.access_requests[request.request_id] = request
        return self._access(request)

    @tool(effect="write", confirm=ConfirmationRule(always=True, because="a withdrawn request cannot be revived"))
    def withdraw_access_request(self, request_id: str) -> AccessRow:
        """Withdraw a request for access that is still pending.

        Args:
            request_id: Request number.
        """
        request = self.lookup(self.state.access_requests, request_id, "access request")
        if request.status != "pending":
            raise ToolError(f"request {request_id} is {request.status}, and only pending requests can be withdrawn")
        request.status = "withdrawn"
        return self._access(request)

    def _tickets_of(self, employee_id: str) -> list[Ticket]:
        return [ticket for ticket in self.state.tickets.values() if ticket.employee_id == employee_id]

    def _manager(self, employee_id: str) -> str | None:
        manager_id = self.state.employees[employee_id].manager_id
        return self.state.employees[manager_id].name if manager_id else None

    def _due(self, priority: Priority) -> datetime:
        return self.state.now + timedelta(hours=HOURS_TO_FIX[priority])

    def _free_seats(self, software_id: str) -> int:
        taken = sum(licence.software_id == software_id for licence in self.state.licences.values())
        return self.state.software[software_id].seats - taken

    def _detail(self, ticket: Ticket) -> TicketDetail:
        team = self.state.teams[ticket.team_id]
        comments = [comment for comment in self.state.comments.values() if comment.ticket_id == ticket.ticket_id]
        comments.sort(key=lambda entry: (entry.posted_at, int(entry.comment_id.removeprefix("CM"))))
        lines = [
            CommentLine(author=entry.author, text=entry.text, posted_at=entry.posted_at) for entry in comments[-3:]
        ]
        return TicketDetail(
            ticket_id=ticket.ticket_id,
            title=ticket.title,
            status=ticket.status,
            priority=ticket.priority,
            team=team.name,
            team_lead=team.lead,
            opened_at=ticket.opened_at,
            due_at=ticket.due_at,
            resolved_at=ticket.resolved_at,
            escalated=ticket.escalated,
            comments=lines,
        )

    def _comment(self, ticket: Ticket, text: str) -> None:
        comment_id = self.new_id("comment", "CM{:d}")
        self.state.comments[comment_id] = Comment(
            comment_id=comment_id,
            ticket_id=ticket.ticket_id,
            text=text,
            posted_at=self.state.now,
            author=self.state.employees[ticket.employee_id].name,
        )

    def _check_new_ticket(self, employee: Employee, category: Category, impact: Impact) -> None:
        if sum(ticket.status in OPEN for ticket in self._tickets_of(employee.employee_id)) >= MAX_OPEN_TICKETS:
            raise ToolError(f"{MAX_OPEN_TICKETS} tickets are open already, and one of them must be resolved first")
        if impact != "whole_site":
            return
        for ticket in self.state.tickets.values():
            same = ticket.status in OPEN and (ticket.impact, ticket.category) == (impact, category)
            if same and self.state.employees[ticket.employee_id].site == employee.site:
                raise ToolError(f"the {category} outage at {employee.site} is already recorded and being worked on")

    def _check_replaceable(self, device: Device, reason: ReplaceReason) -> None:
        if device.status != "in_use":
            raise ToolError(f"a replacement of the {device.model} is already on its way")
        today = self.state.now.date()
        years = YEARS_TO_REPLACE[device.kind]
        if reason == "worn_out" and (today - device.purchased_on).days < years * 365:
            raise ToolError(
                f"a {device.kind} counts as worn out after {years} years, and this one is from {device.purchased_on}"
            )
        if reason == "broken" and device.warranty_until >= today:
            raise ToolError(
                f"the {device.model} is under warranty until {device.warranty_until}, "
                "so it is repaired instead; for that a ticket is needed"
            )

    def _access(self, request: AccessRequest) -> AccessRow:
        approver = self._manager(request.employee_id) if self.state.systems[request.system].needs_approval else None
        return AccessRow(
            request_id=request.request_id,
            system=request.system,
            status=request.status,
            until=request.until,
            requested_on=request.requested_at.date(),
            approver_name=approver,
        )

    def _check_access(self, employee: Employee, system: SystemName, until: date) -> None:
        today = self.state.now.date()
        name = system.replace("_", " ")
        last = today + timedelta(days=MAX_ACCESS_DAYS)
        if until <= today:
            raise ToolError(f"{until} is too early, because access ends tomorrow at the earliest")
        if until > last:
            raise ToolError(f"access lasts {MAX_ACCESS_DAYS} days at most, until {last}")
        departments = self.state.systems[system].departments
        if departments and employee.department not in departments:
            raise ToolError(f"{name} is only for {' and '.join(departments)}, not for {employee.department}")
        for request in self.state.access_requests.values():
            if (request.employee_id, request.system) != (employee.employee_id, system):
                continue
            if request.status == "pending" or (request.status == "granted" and request.until >= today):
                raise ToolError(f"there is already a {request.status} request for {name}, until {request.until}")


__all__ = ["Helpdesk"]
