"""Short examinations of the corner shop."""

from corner_shop import Shop

from trajsmith.envcheck import CheckPlan, EnvironmentReport, Finding, check_environment
from trajsmith.envcheck.checks import CHECKS
from trajsmith.envcheck.exploration import ExplorationEffort

PLAN = CheckPlan(effort=ExplorationEffort(first=12, enough=3, hard=20, walks=1, length=8), seeds=8, starts=5)


async def report_on(shop: Shop, *names: str, plan: CheckPlan = PLAN) -> EnvironmentReport:
    return await check_environment(shop, plan, [check for check in CHECKS if not names or check.name in names])


async def found(shop: Shop, *names: str) -> list[Finding]:
    """What the checks of these names say, without notes."""
    report = await report_on(shop, *names)
    return [finding for finding in report.findings if finding.severity != "note"]


def calls(finding: Finding) -> list[str]:
    assert finding.case is not None
    return [step.tool if step.do == "call" else step.do for step in finding.case.steps]
