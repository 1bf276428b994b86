"""Every parser of foreign bytes takes a short corpus and mutations of it: it answers, or names what is wrong.

`make fuzz` goes on from here by coverage, as long as one likes; `corpus/` has the inputs that once were faults.
"""

import random
import subprocess
import time
from pathlib import Path

import pytest
from fuzz_targets import SEEDS, TARGETS
from mutation import mutate_bytes

CORPUS = Path(__file__).parent / "corpus"
MUTATIONS = 60, 2000
"""Of each input, and with --full."""
SLOW = 10.0


def test_make_fuzz_fails_where_the_parsers_cannot_be_listed(tmp_path: Path) -> None:
    for stamp in ("base", "dev"):
        (tmp_path / stamp).touch()
    (tmp_path / "python").write_text('#!/bin/sh\ncase "$*" in *--list) exit 3;; esac\n')
    (tmp_path / "python").chmod(0o755)
    command = ["make", "fuzz", f"BIN={tmp_path}", f"STAMPS={tmp_path}"]
    assert subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True).returncode == 2


@pytest.mark.parametrize("name", TARGETS)
def test_a_parser_takes_any_bytes(name: str, full: bool) -> None:
    dice = random.Random(f"fuzz {name}")
    inputs = [b"", *SEEDS[name], *(path.read_bytes() for path in sorted((CORPUS / name).glob("*")))]
    if name in ("sqlite", "parquet"):
        inputs += [dice.randbytes(3 * dice.randrange(1, 20)) for _ in range(20)]
    budget = time.monotonic() + (60 if full else 4)
    for data in inputs:
        TARGETS[name](data)
    for _ in range(MUTATIONS[full]):
        for data in inputs:
            mutated = mutate_bytes(data, dice)
            for _ in range(dice.randrange(3)):
                mutated = mutate_bytes(mutated, dice)
            began = time.process_time()
            TARGETS[name](mutated[:20_000])
            assert time.process_time() - began < SLOW, f"{name} takes long for {mutated[:200]!r}"
        if time.monotonic() > budget:
            break
