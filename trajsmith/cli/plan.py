"""`trajsmith plan`: what a large run would take."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from trajsmith.cli.console import out


def plan(
    directory: Annotated[Path, typer.Argument(metavar="PILOT", help="Finished run with engine.workers=1.")],
    count: Annotated[int, typer.Option("--count", min=1, help="Accepted trajectories that are wanted.")],
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="Machines.")] = 1,
    cores: Annotated[int, typer.Option("--cores", min=1, help="Cores of each machine.")] = 16,
) -> None:
    """Predict time, money, records and storage of a large run from a finished pilot; nothing is started.

    trajsmith plan runs/pilot --count 1000000 --nodes 50 --cores 16
    """
    from trajsmith.pipeline.run_directory import RunDirectory
    from trajsmith.pipeline.scale_plan import plan_scale

    planned = plan_scale(RunDirectory.open(directory), count, nodes, cores)
    table = Table("stage", "core hours", "processes", "wall minutes", title=f"{count} accepted trajectories")
    for column in table.columns[1:]:
        column.justify = "right"
    for stage in planned.stages:
        hours, minutes = stage.core_seconds / 3600, stage.wall_seconds / 60
        table.add_row(stage.name, f"{hours:.2f}", str(stage.parallel), f"{minutes:.1f}")
    out.print(table)
    out.print(f"records: {', '.join(f'{number} {name}' for name, number in planned.records.items())}")
    slowest = planned.bottleneck
    share = slowest.wall_seconds / planned.wall_seconds
    out.print(
        f"chains: {planned.chains}   wall: {planned.wall_seconds / 3600:.2f} h   models: {planned.cost:.2f}   "
        f"storage: {planned.stored_bytes / 2**30:.2f} GiB"
    )
    out.print(f"bottleneck: {slowest.name} ({share:.0%} of the wall time, {slowest.parallel} processes)")
