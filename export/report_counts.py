"""What a report counts of trajectories, in one process or in several that each count a part."""

from collections import Counter
from collections.abc import Iterable, Mapping, Set

from trajsmith.export.conversation_pages import Group, find_group
from trajsmith.export.sibling_pairs import SiblingPairs
from trajsmith.export.statistics import Statistics
from trajsmith.phrasing import DialogueVariety
from trajsmith.records import EnvironmentSpec, Task, TaskHeader, Trajectory, Verdict


class ReportCounts:
    """Counts of judged trajectories; those of several parts can be merged. The plays of a task come together.

    Args:
        compared: Dialogues of one environment whose words are compared, the first ones; None compares all.
    """

    def __init__(self, compared: int | None = None) -> None:
        self.statistics = Statistics()
        self.variety = DialogueVariety(compared)
        self.pairs = SiblingPairs()
        self.groups: Counter[Group] = Counter()
        """Conversations of each environment and outcome so far."""

    def add(
        self,
        task: Task | TaskHeader,
        trajectory: Trajectory,
        verdict: Verdict,
        own_tools: Mapping[str, Set[str]],
        number: int | None = None,
        compared: bool = True,
    ) -> None:
        """Count one judged trajectory.

        Args:
            task: What was played.
            trajectory: The dialogue.
            verdict: Verdict on it.
            own_tools: As `list_agent_tools` gives it.
            number: Place among the accepted ones of the run, from 1; the next one if None.
            compared: Compare its words with those of others if it is accepted.
        """
        self.statistics.add(task, trajectory, verdict, own_tools.get(trajectory.environment, frozenset()), number)
        if verdict.accepted and compared:
            self.variety.add(trajectory)
        self.pairs.add(task, trajectory, verdict)
        self.groups[find_group(trajectory, verdict)] += 1

    def close(self) -> None:
        """Compare the plays of the last task."""
        self.pairs.close()

    def merge(self, other: "ReportCounts") -> None:
        """Add what was counted of later tasks."""
        self.statistics.merge(other.statistics)
        self.variety.merge(other.variety)
        self.pairs.merge(other.pairs)
        self.groups.update(other.groups)


def list_agent_tools(specs: Iterable[EnvironmentSpec]) -> dict[str, frozenset[str]]:
    """Return the tools for the agent of each environment."""
    return {spec.name: frozenset(tool.name for tool in spec.tools if tool.actor == "assistant") for spec in specs}
