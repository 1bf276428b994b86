"""Clones of recorded services: inferred from some dialogues, compared with the recording of others, tool by tool.

    python benchmarks/trace_clone.py --recordings FILE ... [--train 100] [--test 40] [--by dialogue|task] [--misses]
    python benchmarks/trace_clone.py --bundled bank --bundled helpdesk [--train 60] [--test 30] [--calls 12]

Three states are compared. `train`: what the dialogues of the training part show. `own`: the same, with the rows that
an unseen dialogue itself shows before it writes to them; calls that show such a row first are counted apart.
`copy`: no clone at all, the answer to the same tool with the same arguments, wherever the training part has it. A
bundled environment is recorded by random calls, each dialogue from the same initial state, of which only the calls are
used.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT)]

from trajsmith.envcheck import CheckPlan  # noqa: E402
from trajsmith.envcheck.argument_sampler import ArgumentContext  # noqa: E402
from trajsmith.envcheck.check_session import CheckSession  # noqa: E402
from trajsmith.envgen.generate.formatting import fix_and_format_code  # noqa: E402
from trajsmith.envgen.traces.code import render_clone  # noqa: E402
from trajsmith.envgen.traces.conformance import Conformance, measure_conformance  # noqa: E402
from trajsmith.envgen.traces.infer import Clone, infer_clone  # noqa: E402
from trajsmith.envgen.traces.reading import read_recording  # noqa: E402
from trajsmith.envgen.traces.recordings import CallRecording, RecordedDialogue, TracedCall, freeze  # noqa: E402
from trajsmith.environments.native_source import build_library_source  # noqa: E402

OUT = Console(width=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, nargs="*", default=[])
    parser.add_argument("--bundled", action="append", default=[])
    parser.add_argument("--train", type=int, default=100)
    parser.add_argument("--test", type=int, default=40)
    parser.add_argument("--calls", type=int, default=12)
    parser.add_argument("--by", choices=("dialogue", "task"), default="dialogue")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--misses", action="store_true")
    options = parser.parse_args()
    sources: list[tuple[str, CallRecording]] = []
    if options.recordings:
        sources.append((", ".join(file.name for file in options.recordings), read_recording(options.recordings)))
    for name in options.bundled:
        whole = asyncio.run(record_environment(name, options.train + options.test, options.calls, options.seed))
        sources.append((name, whole))
    for name, recording in sources:
        train, unseen = split_recording(recording, options.train, options.test, options.by, options.seed)
        compare(name, train, unseen, options.misses)


def split_recording(
    recording: CallRecording, train: int, test: int, by: str, seed: int
) -> tuple[CallRecording, CallRecording]:
    """Return two parts without a common dialogue, or without a common task."""
    rng = random.Random(seed)
    numbers = list(range(len(recording.dialogues)))
    if by == "dialogue":
        rng.shuffle(numbers)
        return recording.select(numbers[:train]), recording.select(numbers[train : train + test])
    tasks = sorted({one.task for one in recording.dialogues})
    rng.shuffle(tasks)
    unseen: list[int] = []
    for task in tasks:
        if len(unseen) < test:
            unseen += [n for n in numbers if recording.dialogues[n].task == task]
    return recording.select([n for n in numbers if n not in set(unseen)][:train]), recording.select(unseen[:test])


def compare(name: str, train: CallRecording, unseen: CallRecording, misses: bool) -> None:
    started = time.process_time()
    clone = infer_clone(train)
    rendered = render_clone(clone, "recorded_clone", "Clone", "benchmark")
    seconds = time.process_time() - started
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "recorded_clone.py"
        file.write_text(fix_and_format_code(rendered.code), encoding="utf-8")
        alone = asyncio.run(measure_conformance(file, clone, rendered.names, unseen, False))
        own = asyncio.run(measure_conformance(file, clone, rendered.names, unseen, True))
    print_table(name, clone, train, unseen, alone, own)
    OUT.print(f"inference and code: {seconds:.1f} s of CPU", markup=False)
    if misses:
        for miss in own.misses:
            OUT.print(
                f"  {miss.dialogue}#{miss.place} {miss.tool}: {miss.cause}: {miss.detail}", markup=False, soft_wrap=True
            )


def print_table(
    name: str, clone: Clone, train: CallRecording, unseen: CallRecording, alone: Conformance, own: Conformance
) -> None:
    copied = count_copies(train, unseen)
    table = Table(title=f"{name}: {len(train.dialogues)} dialogues, {len(unseen.dialogues)} unseen")
    for head in (
        "tool",
        "seen calls",
        "held out",
        "unseen",
        "copy",
        "train",
        "own: judged",
        "own: equal",
        "supplied",
        "misses",
    ):
        table.add_column(head, justify="left" if head in ("tool", "misses") else "right")
    judged, supplied, plain = own.by_tool(False), own.by_tool(True), alone.by_tool()
    for tool in sorted(plain):
        program = clone.programs.get(tool)
        calls, equal, causes = judged.get(tool, (0, 0, Counter()))
        held = "-" if program is None or program.held_out is None else f"{program.held_out:.0%}"
        numbers = (plain[tool][0], copied[tool], plain[tool][1], calls, equal, supplied.get(tool, (0,))[0])
        seen = str(program.calls if program else 0)
        table.add_row(tool, seen, held, *map(str, numbers), ", ".join(f"{k} {v}" for k, v in causes.items()))
    (every, good), (judge, right) = alone.count(), own.count(False)
    table.add_section()
    table.add_row(
        "all", str(sum(p.calls for p in clone.programs.values())), "", str(every), _share(sum(copied.values()), every),
        _share(good, every), str(judge), _share(right, judge), str(own.count(True)[0]), "",
    )  # fmt: skip
    OUT.print(table)
    writers = clone.schema.writers
    changes = [one for one in own.outcomes if one.tool in writers and not one.supplies]
    OUT.print(f"writes: {sum(one.equal for one in changes)} of {len(changes)} equal", markup=False)


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / max(1, whole):.1%})"


def count_copies(train: CallRecording, unseen: CallRecording) -> Counter[str]:
    """Count the calls whose result the most frequent answer to the same arguments gives."""
    answers: dict[Any, Counter[Any]] = {}
    for _, _, call in train.calls:
        answers.setdefault((call.tool, freeze(call.arguments)), Counter())[freeze(call.result)] += 1
    equal: Counter[str] = Counter()
    for _, _, call in unseen.calls:
        known = answers.get((call.tool, freeze(call.arguments)))
        equal[call.tool] += known is not None and known.most_common(1)[0][0] == freeze(call.result)
    return equal


async def record_environment(name: str, dialogues: int, calls: int, seed: int) -> CallRecording:
    """Record random calls on a bundled environment, every dialogue from the same state."""
    source = build_library_source(name, {"medium": 1})
    session = await CheckSession.prepare(source, CheckPlan(seed=seed, seconds=600))
    state = (await source.states(seed))[0]
    played = await source.open()
    tools = [tool for tool in session.spec.tools if tool.actor == "assistant"]
    view = session.view_at(session.starts[0])
    recorded = []
    for number in range(dialogues):
        rng = random.Random(f"{seed}:{number}")
        await played.reset(state)
        session.sampler.forget_results()
        scene = ArgumentContext(view, session.data)
        steps = []
        for _ in range(calls):
            tool = rng.choice(tools)
            scene.turn(session.sampler._relations(tool), rng)
            arguments = session.sampler.draw(tool.name, scene, rng)
            result = await played.call(tool.name, arguments)
            content: Any = result.content
            if result.ok:
                session.sampler.learn_from_result(tool.name, content)
                session.sampler.record_success(tool.name, arguments)
                content = content["result"] if isinstance(content, dict) and set(content) == {"result"} else content
            else:
                content = str(content["error"]) if isinstance(content, dict) and "error" in content else result.text
            steps.append(TracedCall(tool.name, arguments, content, not result.ok))
        recorded.append(RecordedDialogue(f"{name}:{number}", steps, str(number)))
    await session.close()
    return CallRecording(recorded)


if __name__ == "__main__":
    main()
