"""Written checks of a task: a model writes them, tests sort them out, the task keeps those that stood their tests."""

from dataclasses import dataclass

from trajsmith.environments import Session
from trajsmith.grounding import replays
from trajsmith.models import ChatModel
from trajsmith.models.prompts import Prompts
from trajsmith.records import CheckAudit, EnvironmentSpec, JsonObject, RecordDropped, Task, derive_seed
from trajsmith.verify.check_author import ModelCheckWriter
from trajsmith.verify.check_panel import CheckPanel
from trajsmith.verify.code_checks import CodeCheckRunner
from trajsmith.verify.gold_run import GoldRun, list_gold_calls
from trajsmith.verify.written_checks import WrittenChecks, WrittenCheckSettings, WrittenCheckTester, write_checks


@dataclass(frozen=True)
class CheckAuthor:
    """Model, place and limits of written checks in one environment."""

    model: ChatModel
    spec: EnvironmentSpec
    prompts: Prompts
    code: CodeCheckRunner
    settings: WrittenCheckSettings


async def add_written_checks(task: Task, author: CheckAuthor, state: JsonObject, session: Session) -> Task:
    """Return a task with the written checks that stood their tests, in its last turn, beside the derived ones.

    Items without a check are named in `audit.dropped` with the reason. A server that cannot go back to an earlier state
    gives no runs to test on, so that its tasks stay as they are.

    Raises:
        RecordDropped: The gold calls cannot be made again.
        ModelFault: The model could not answer.
        EnvironmentFault: The environment broke.
    """
    if replays(session):
        return task
    panel, tester = await open_tester(task, author, state, session)
    writer = ModelCheckWriter(author.model, task, author.spec, panel, author.prompts)
    written = await write_checks(writer, tester, author.settings)
    return apply_written_checks(task, written, writer.used)


async def open_tester(
    task: Task, author: CheckAuthor, state: JsonObject, session: Session
) -> tuple[CheckPanel, WrittenCheckTester]:
    """Play the gold run and build the runs on which written checks of a task are tested.

    Raises:
        RecordDropped: The gold calls cannot be made again.
        EnvironmentFault: The environment broke.
    """
    gold = GoldRun(list_gold_calls(task.turns), session)
    await gold.play(state)
    if len(gold.ran.states) < len(task.turns):
        raise RecordDropped("gold_not_repeatable", f"{gold.ran.calls[-1][0]} is refused when it is made again")
    facts, asked = [turn.facts for turn in task.turns], [turn.asked for turn in task.turns]
    panel = CheckPanel(gold, task.masks, [turn.checks for turn in task.turns], facts, author.code, asked)
    seed = derive_seed(task.seed, "written checks")
    return panel, await WrittenCheckTester.of(panel, author.spec, author.settings, seed, author.code)


def apply_written_checks(task: Task, written: WrittenChecks, prompts: dict[str, str]) -> Task:
    """Return a task with written checks in its last turn, and with the dropped items in its audit."""
    audit = task.audit or CheckAudit()
    dropped = tuple(f"{item}: {fault.reason}: {fault.evidence}" for item, fault in written.dropped)
    last = task.turns[-1].model_copy(update={"checks": (*task.turns[-1].checks, *written.checks)})
    changed = task.model_copy(
        update={
            "turns": (*task.turns[:-1], last),
            "audit": audit.model_copy(update={"dropped": (*audit.dropped, *dropped)}),
            "prompts": {**task.prompts, **prompts},
        }
    )
    return changed.model_copy(update={"id": changed.content_id()})
