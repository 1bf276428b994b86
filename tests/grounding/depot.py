"""A depot for the tests: nothing is there at first, and only refusals say what its tools want."""

from datetime import datetime
from typing import Literal

from trajsmith.environments import Environment, EnvironmentState, StateModel, ToolError, tool
from trajsmith.records import Chain, JsonObject, derive_seed

Guard = Literal["front", "back", "left", "right"]


class Account(StateModel):
    password: str
    manager: dict[str, str] = {}


class Job(StateModel):
    job_id: str
    title: str
    status: str = "open"
    day: str = ""


class DepotState(EnvironmentState):
    accounts: dict[str, Account] = {}
    jobs: dict[str, Job] = {}
    keepers: dict[str, dict[str, Job]] = {}
    signed_in: str = ""
    closed: list[str] = []
    level: int = 0
    press: bool = False


class Done(StateModel):
    done: str


class Depot(Environment[DepotState]):
    """A depot."""

    @tool(effect="write")
    def sign_in(self, user: str, password: str) -> Done:
        """Sign in.

        Args:
            user: Name of the account.
            password: Its password.
        """
        if user not in self.state.accounts or self.state.accounts[user].password != password:
            raise ToolError("wrong name or password")
        self.state.signed_in = user
        return Done(done=user)

    @tool(effect="write")
    def sign_out(self) -> Done:
        """Sign out."""
        if not self.state.signed_in:
            raise ToolError("nobody is there")
        self.state.signed_in = ""
        return Done(done="bye")

    @tool(effect="write")
    def add_job(self, title: str, priority: str) -> Job:
        """Note a job.

        Args:
            title: What is to be done.
            priority: How much it matters.
        """
        self._known()
        if priority not in ("calm", "urgent"):
            raise ToolError(f"priority '{priority}' is unknown: must be one of: calm, urgent")
        job = Job(job_id=f"J{len(self.state.jobs) + 1}", title=title)
        self.state.jobs[job.job_id] = job
        return job

    @tool(effect="read")
    def list_jobs(self) -> list[Job]:
        """All jobs."""
        self._known()
        return list(self.state.jobs.values())

    @tool(effect="write")
    def plan_job(self, job_id: str, day: str) -> Job:
        """Set the day of a job.

        Args:
            job_id: Which job.
            day: The day, in MM/DD/YYYY format.
        """
        self._known()
        job = self.lookup(self.state.jobs, job_id, "job")
        try:
            datetime.strptime(day, "%m/%d/%Y")
        except ValueError as error:
            raise ToolError("day is not in the form MM/DD/YYYY") from error
        job.day = day
        return job

    @tool(effect="write")
    def set_level(self, level: int) -> Done:
        """Set the level.

        Args:
            level: The level.
        """
        if not 440 <= level <= 450:
            raise ToolError("level must be between 440 and 450")
        self.state.level = level
        return Done(done=str(level))

    @tool(effect="write")
    def close_guards(self, guards: list[Guard]) -> Done:
        """Close guards of the press.

        Args:
            guards: Which ones.
        """
        self.state.closed = sorted({*self.state.closed, *guards})
        return Done(done=", ".join(guards))

    @tool(effect="write")
    def start_press(self) -> Done:
        """Start the press."""
        if len(self.state.closed) < 4:
            raise ToolError("all guards must be closed before the press is started")
        self.state.press = True
        return Done(done="runs")

    @tool(effect="read")
    def kept_job(self, keeper: str, job: str) -> Job:
        """A job that somebody keeps.

        Args:
            keeper: Who keeps it.
            job: Which of that keeper's jobs.
        """
        if job not in self.state.keepers.get(keeper, {}):
            raise ToolError("no such job")
        return self.state.keepers[keeper][job]

    @tool(effect="read")
    def find_manager(self, first_name: str, last_name: str) -> Done:
        """Whose manager has this name?

        Args:
            first_name: First name.
            last_name: Last name.
        """
        for user, account in self.state.accounts.items():
            if account.manager == {"first": first_name, "last": last_name}:
                return Done(done=user)
        raise ToolError("nobody has that name")

    def _known(self) -> None:
        if not self.state.signed_in:
            raise ToolError("Authentication required. Please sign in first.")


def depot_state() -> JsonObject:
    accounts = {
        name: Account(password=f"{name}-{number}", manager={"first": f"Ann{number}", "last": f"Bell{number}"})
        for number, name in enumerate(("ida", "olaf", "piet"))
    }
    keepers = {
        keeper: {
            f"K{number}{place}": Job(job_id=f"K{number}{place}", title=f"sweep hall {number}{place}")
            for place in range(3)
        }
        for number, keeper in enumerate(("north", "south", "west"))
    }
    state = DepotState(now=datetime(2026, 3, 2, 9), accounts=accounts, keepers=keepers)
    return state.model_dump(mode="json")


def only(tool: str, seed: int = 0) -> Chain:
    """A chain of one tool."""
    return Chain(
        index=seed,
        environment="depot",
        tools=(tool,),
        dependencies=(),
        state="state",
        sampler={},
        seed=derive_seed("depot", tool, seed),
    )
