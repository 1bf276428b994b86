"""Python text of a solution program, as a dataset shows it: a function `solve(call)` over the tools."""

from typing import Any

from trajsmith.querygen.programs.operations import (
    JoinRows,
    KeepRows,
    ListRows,
    LookUpRows,
    SolutionProgram,
    Step,
    TakeRows,
)

_SIGNS = {"equals": "==", "above": ">", "below": "<"}


def render_python(program: SolutionProgram) -> str:
    """Render a program as Python source: `solve(call)`, where `call(tool, **arguments)` returns a tool's result."""
    lines: list[str] = []
    for call in program.opening:
        lines.append(f"account = call({call.tool!r}{_keywords(call.arguments)})")
    lines += _list(program.rows, "rows")
    if program.answer.how == "share":
        lines.append("listed = len(rows)")
    for step in program.steps:
        lines += _step(step)
    write: list[str] = []
    if program.write is not None:
        own = f", {program.write.field}=row[{program.write.field!r}]"
        done = f"call({program.write.tool!r}{own}{_keywords(program.write.arguments)})"
        write.append("for row in rows:")
        if program.write.adds:
            write += [f"    done = {done}", f"    row[{program.write.adds!r}] = done[{program.write.adds!r}]"]
        else:
            write.append(f"    {done}")
    if program.branch is not None:
        branch = program.branch
        total = f"round(sum(row[{branch.field!r}] for row in rows), 2)" if branch.how == "sum" else "len(rows)"
        lines += [f"tested = {total}", f"if tested {'>' if branch.above else '<'} {branch.value!r}:"]
        write = [f"    {line}" for line in write]
    lines += [*write, *_answer(program)]
    return "def solve(call):\n" + "".join(f"    {line}\n" for line in lines)


def _keywords(arguments: dict[str, Any]) -> str:
    return "".join(f", {name}={value!r}" for name, value in arguments.items())


def _list(listing: ListRows, name: str) -> list[str]:
    fixed = _keywords(listing.arguments)
    if listing.parent is not None:
        own = f", {listing.parent_key}=parent[{listing.parent_key!r}]"
        return [
            *_list(listing.parent, "parents"),
            *(line for step in listing.parents for line in _step(step, "parents")),
            f"{name} = []",
            "for parent in parents:",
            f"    for row in call({listing.tool!r}{own}{fixed})['result']:",
            f"        {name}.append({{**parent, **row}})",
        ]
    owner = f", {listing.owner}=account[{listing.owner!r}]" if listing.owner else ""
    if not listing.page:
        return [f"{name} = [dict(row) for row in call({listing.tool!r}{fixed}{owner})['result']]"]
    return [
        f"{name}, page, size = [], 1, 0",
        "while True:",
        f"    page_rows = call({listing.tool!r}{fixed}{owner}, {listing.page}=page)['result']",
        f"    {name} += [dict(row) for row in page_rows]",
        "    size, page = size or len(page_rows), page + 1",
        "    if not page_rows or len(page_rows) < size:",
        "        break",
    ]


def _step(step: Step, name: str = "rows") -> list[str]:
    if isinstance(step, KeepRows):
        return [f"{name} = [row for row in {name} if row[{step.field!r}] {_SIGNS[step.how]} {step.value!r}]"]
    if isinstance(step, LookUpRows):
        call = f"call({step.tool!r}, {step.field}=row[{step.field!r}])"
        return [f"rows = [{{**{call}, **row}} for row in rows]"]
    if isinstance(step, TakeRows):
        key = f"key=lambda row: row[{step.field!r}], reverse={step.descending}"
        return [f"rows = sorted(rows, {key})[:{step.count}]"]
    assert isinstance(step, JoinRows)
    test = "in" if step.present else "not in"
    call = f"call({step.tool!r}, {step.owner}=account[{step.owner!r}])['result']"
    return [
        f"keys = {{other[{step.on!r}] for other in {call}}}",
        f"rows = [row for row in rows if row[{step.on!r}] {test} keys]",
    ]


def _answer(program: SolutionProgram) -> list[str]:
    answer = program.answer
    values = f"[row[{answer.field!r}] for row in rows]"
    if answer.how in ("largest", "smallest"):
        function = "max" if answer.how == "largest" else "min"
        return [f"return {function}(rows, key=lambda row: row[{answer.field!r}])[{answer.label!r}]"]
    returned = {
        "done": "None",
        "count": "len(rows)",
        "share": "round(100 * len(rows) / listed, 1)",
        "sum": f"round(sum({values}), 2)",
        "mean": f"round(sum({values}) / len(rows), 2)",
        "difference": f"round(max({values}) - min({values}), 2)",
    }
    labels = f"[row[{answer.label!r}] for row in rows]"
    return [f"return {returned.get(answer.how, labels)}"]
