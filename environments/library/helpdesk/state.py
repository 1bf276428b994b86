"""What the help desk knows: employees, devices, tickets, comments, teams, software, licences, articles, access."""

from datetime import date, datetime
from typing import Literal

from trajsmith.environments.native import EnvironmentState, StateModel

Category = Literal["email", "network", "hardware", "software", "printing", "account"]
TicketStatus = Literal["new", "in_progress", "waiting_for_reply", "resolved", "closed"]
Priority = Literal["low", "normal", "high", "urgent"]
Impact = Literal["minor", "one_person", "one_team", "whole_site"]
ReopenReason = Literal["came_back", "never_fixed", "partly_fixed"]
DeviceKind = Literal["laptop", "phone", "monitor"]
DeviceStatus = Literal["in_use", "being_replaced", "reported_lost"]
ReplaceReason = Literal["worn_out", "broken", "lost_or_stolen"]
Purpose = Literal["design", "development", "office", "analytics", "meetings"]
LicenceStatus = Literal["active", "awaiting_approval"]
SystemName = Literal[
    "shared_drive",
    "customer_database",
    "payroll",
    "source_code",
    "sales_dashboard",
    "remote_access",
    "document_archive",
]
AccessStatus = Literal["pending", "granted", "declined", "withdrawn", "expired"]

PRIORITY_OF: dict[Impact, Priority] = {
    "minor": "low",
    "one_person": "normal",
    "one_team": "high",
    "whole_site": "urgent",
}
HOURS_TO_FIX: dict[Priority, int] = {"low": 168, "normal": 72, "high": 24, "urgent": 4}
NEXT_PRIORITY: dict[Priority, Priority] = {"low": "normal", "normal": "high", "high": "urgent", "urgent": "urgent"}
NEW_MODELS: dict[DeviceKind, str] = {"laptop": "Corvid 15", "phone": "Pico 10", "monitor": "Vista 28"}
SECOND_LINE = "TEAM5"


class Employee(StateModel):
    employee_id: str
    name: str
    email: str
    department: str
    site: str
    manager_id: str | None


class Device(StateModel):
    device_id: str
    employee_id: str
    kind: DeviceKind
    model: str
    purchased_on: date
    warranty_until: date
    status: DeviceStatus


class Replacement(StateModel):
    replacement_id: str
    device_id: str
    new_model: str
    reason: ReplaceReason
    collect_on: date


class Team(StateModel):
    team_id: str
    name: str
    lead: str
    handles: list[Category]


class Ticket(StateModel):
    ticket_id: str
    employee_id: str
    team_id: str
    title: str
    category: Category
    impact: Impact
    priority: Priority
    status: TicketStatus
    opened_at: datetime
    due_at: datetime
    resolved_at: datetime | None
    escalated: bool
    times_reopened: int


class Comment(StateModel):
    comment_id: str
    ticket_id: str
    author: str
    text: str
    posted_at: datetime


class Software(StateModel):
    software_id: str
    name: str
    purpose: Purpose
    monthly_cost: float
    seats: int


class Licence(StateModel):
    licence_id: str
    software_id: str
    employee_id: str
    status: LicenceStatus
    assigned_on: date


class Article(StateModel):
    article_id: str
    title: str
    topic: Category
    steps: list[str]
    minutes: int
    updated_on: date


class System(StateModel):
    system: SystemName
    needs_approval: bool
    departments: list[str]
    """Only these departments may have access; empty for all."""


class AccessRequest(StateModel):
    request_id: str
    employee_id: str
    system: SystemName
    status: AccessStatus
    requested_at: datetime
    until: date


class HelpdeskState(EnvironmentState):
    employees: dict[str, Employee] = {}
    devices: dict[str, Device] = {}
    replacements: dict[str, Replacement] = {}
    teams: dict[str, Team] = {}
    tickets: dict[str, Ticket] = {}
    comments: dict[str, Comment] = {}
    software: dict[str, Software] = {}
    licences: dict[str, Licence] = {}
    articles: dict[str, Article] = {}
    systems: dict[str, System] = {}
    access_requests: dict[str, AccessRequest] = {}


# What tools show


class EmployeeCard(StateModel):
    employee_id: str
    name: str
    department: str
    site: str
    manager_name: str | None


class TicketRow(StateModel):
    ticket_id: str
    title: str
    status: TicketStatus
    priority: Priority
    opened_on: date


class CommentLine(StateModel):
    author: str
    text: str
    posted_at: datetime


class TicketDetail(StateModel):
    ticket_id: str
    title: str
    status: TicketStatus
    priority: Priority
    team: str
    team_lead: str
    opened_at: datetime
    due_at: datetime
    resolved_at: datetime | None
    escalated: bool
    comments: list[CommentLine]


class ArticleRow(StateModel):
    article_id: str
    title: str
    minutes: int
    updated_on: date


class SoftwareRow(StateModel):
    software_id: str
    name: str
    monthly_cost: float
    free_seats: int
    needs_approval: bool


class LicenceResult(StateModel):
    licence_id: str
    software_name: str
    status: LicenceStatus
    approver_name: str | None
    free_seats_left: int


class ReplacementResult(StateModel):
    replacement_id: str
    old_model: str
    new_model: str
    collect_on: date
    site: str


class AccessRow(StateModel):
    request_id: str
    system: SystemName
    status: AccessStatus
    requested_on: date
    until: date
    approver_name: str | None
