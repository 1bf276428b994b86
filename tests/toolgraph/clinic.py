"""A clinic for the tests of evidence: two tables that both count from 1, and badges with large numbers."""

from datetime import datetime

from trajsmith.environments import Environment, EnvironmentState, NativeSession, StateModel, tool
from trajsmith.phrasing import Phrasebook
from trajsmith.records import EnvironmentSpec, JsonObject


class Doctor(StateModel):
    doctor_id: int
    field: str


class Patient(StateModel):
    patient_id: int
    phone: str


class Visit(StateModel):
    patient: int
    """The same numbers under another name."""
    fee: int


class Door(StateModel):
    opened_by: int
    """A badge, which no name says."""


class Badge(StateModel):
    badge_id: int
    holder: str


class ClinicState(EnvironmentState):
    doctors: dict[str, Doctor] = {}
    patients: dict[str, Patient] = {}
    badges: dict[str, Badge] = {}
    fees: list[int] = []


class Clinic(Environment[ClinicState]):
    """A clinic."""

    @tool(effect="read")
    def list_doctors(self) -> list[Doctor]:
        """All doctors."""
        return list(self.state.doctors.values())

    @tool(effect="read")
    def list_visits(self) -> list[Visit]:
        """All visits."""
        numbers = [patient.patient_id for patient in self.state.patients.values()]
        return [Visit(patient=number, fee=fee) for number, fee in zip(numbers, self.state.fees, strict=True)]

    @tool(effect="read")
    def list_doors(self) -> list[Door]:
        """All doors."""
        return [Door(opened_by=badge.badge_id) for badge in self.state.badges.values()]

    @tool(effect="read")
    def get_patient(self, patient_id: int) -> Patient:
        """One patient.

        Args:
            patient_id: Which patient.
        """
        return self.lookup(self.state.patients, str(patient_id), "patient")

    @tool(effect="read")
    def get_badge(self, badge_id: int) -> Badge:
        """One badge.

        Args:
            badge_id: Which badge.
        """
        return self.lookup(self.state.badges, str(badge_id), "badge")


class ClinicSource:
    """Its sessions, with two initial states.

    Args:
        badges: The badges' numbers; fees are the same and one more each.
    """

    name = "clinic"
    isolation = "in process"
    notes: tuple[str, ...] = ()
    phrasebook = Phrasebook()

    def __init__(self, badges: tuple[int, ...]) -> None:
        self.badges = badges

    async def spec(self) -> EnvironmentSpec:
        return Clinic.describe()

    async def states(self, seed: int) -> list[JsonObject]:
        return [_state(6, self.badges), _state(8, self.badges)]

    async def open(self) -> NativeSession:
        return NativeSession(Clinic, Clinic.describe())


def _state(size: int, badges: tuple[int, ...]) -> JsonObject:
    numbers = range(1, size + 1)
    state = ClinicState(
        now=datetime(2026, 3, 2, 9),
        doctors={str(one): Doctor(doctor_id=one, field=f"field {one}") for one in numbers},
        patients={str(one): Patient(patient_id=one, phone=f"0170-{one}") for one in numbers},
        badges={str(one): Badge(badge_id=one, holder=f"holder {one}") for one in badges},
        fees=[90_000_000 + one for one in numbers],
    )
    return state.model_dump(mode="json")
