"""The user's cache: what is read back is what was stored by the same code, or nothing."""

import os
from pathlib import Path

import pytest

from trajsmith.records import UserCache, user_cache

KEY, CONTENT = "a template {x}", b"its code"


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(user_cache.CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def list_files(base: Path) -> list[Path]:
    return sorted(path for path in base.rglob("*") if path.is_file())


def test_stored_bytes_are_read_by_another_process_of_the_same_code(base: Path) -> None:
    UserCache("phrases").put(KEY, CONTENT)
    assert UserCache("phrases").get(KEY) == CONTENT
    assert UserCache("phrases").get("another") is None
    assert UserCache("graphs").get(KEY) is None


def test_other_code_reads_nothing(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    UserCache("phrases").put(KEY, CONTENT)
    monkeypatch.setattr(user_cache, "compute_code_fingerprint", lambda: "0" * 16)
    assert UserCache("phrases").get(KEY) is None


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data[:20], lambda data: b"", lambda data: data[:-1] + b"!"]
)
def test_a_damaged_file_is_no_entry_and_is_written_again(base: Path, damage) -> None:
    UserCache("phrases").put(KEY, CONTENT)
    (file,) = list_files(base)
    file.write_bytes(damage(file.read_bytes()))
    assert UserCache("phrases").get(KEY) is None
    UserCache("phrases").put(KEY, CONTENT)
    assert UserCache("phrases").get(KEY) == CONTENT


def test_off_stores_nothing(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(user_cache.CACHE_VARIABLE, "off")
    cache = UserCache("phrases")
    cache.put(KEY, CONTENT)
    assert cache.get(KEY) is None
    assert not base.exists()


def test_a_folder_that_others_can_write_to_is_not_used(base: Path) -> None:
    base.mkdir()
    base.chmod(0o777)
    cache = UserCache("phrases")
    cache.put(KEY, CONTENT)
    assert cache.get(KEY) is None
    assert list_files(base) == []


def test_work_goes_on_where_nothing_can_be_stored(base: Path) -> None:
    base.write_text("a file in place of the folder")
    cache = UserCache("phrases")
    cache.put(KEY, CONTENT)
    assert cache.get(KEY) is None


def test_a_full_disk_ends_storing_and_not_the_work(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, tried = UserCache("phrases"), []
    assert cache.get(KEY) is None

    def fail(path: Path, data: bytes) -> int:
        tried.append(path)
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "write_bytes", fail)
    cache.put(KEY, CONTENT)
    cache.put("another", CONTENT)
    assert len(tried) == 1


def test_old_versions_are_removed(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(user_cache.MOST_VERSIONS + 3):
        monkeypatch.setattr(user_cache, "compute_code_fingerprint", lambda name=f"version{number}": name)
        UserCache("phrases").put(KEY, CONTENT)
        os.utime(base / f"version{number}", (number, number))
    left = sorted(path.name for path in base.iterdir())
    assert left == [f"version{number}" for number in range(2, user_cache.MOST_VERSIONS + 3)]


def test_the_fingerprint_covers_the_modules_of_the_package() -> None:
    assert len(user_cache.compute_code_fingerprint()) == 16
    assert (Path(user_cache.__file__).parents[1] / "phrasing" / "templates.py").is_file()
