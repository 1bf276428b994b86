"""A check."""

from trajsmith.verify.checks import CHECKS


@CHECKS.register("few_calls")
def few_calls(check, seen):
    most = check.settings["most"]
    return len(seen.calls) <= most, f"{len(seen.calls)} calls"
