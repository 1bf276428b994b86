"""The file store: each rule of its policy binds, and its tools work together."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from trajsmith.environments.library.file_store import FileStore
from trajsmith.environments.library.file_store.seeds import THEMES, TRASHED
from trajsmith.environments.library.file_store.state import (
    Account,
    Collaborator,
    File,
    FileStoreState,
    Folder,
    Share,
    Tag,
    TrashItem,
    Version,
)

NOW = datetime(2026, 5, 12, 14, 0)
ANA, BEN = "ana@example.com", "ben@example.com"


def file(file_id: str, name: str, folder_id: str = "D1", **changes: Any) -> File:
    made = File(
        file_id=file_id,
        file_name=name,
        folder_id=folder_id,
        file_type="document",
        size_mb=10,
        created_at=NOW - timedelta(days=200),
        modified_at=NOW - timedelta(days=2),
        version_number=3,
        confidentiality="public",
        locked_by=None,
        tag_ids=["G1"],
    )
    return made.model_copy(update=changes)


def trashed(trash_id: str, name: str, days_ago: int, size_mb: float = 10) -> TrashItem:
    deleted = NOW - timedelta(days=days_ago)
    return TrashItem(
        trash_id=trash_id,
        item_name=name,
        file_id=f"F{trash_id}",
        folder_id="D1",
        file_type="document",
        size_mb=size_mb,
        created_at=deleted,
        modified_at=deleted,
        version_number=1,
        confidentiality="internal",
        tag_ids=[],
        deleted_at=deleted,
    )


def version(version_id: str, number: int, days_ago: int, file_id: str = "F1") -> Version:
    return Version(
        version_id=version_id,
        file_id=file_id,
        version_number=number,
        saved_at=NOW - timedelta(days=days_ago),
        saved_by="Ana",
        size_mb=8,
    )


@pytest.fixture
def store() -> FileStore:
    folders = [("D1", "Home", False), ("D2", "Work", False), ("D3", "Archive", True)]
    files = [
        file("F1", "Plan.docx"),
        file("F2", "Plan.docx", "D2"),
        file("F3", "Old.docx", "D3"),
        file("F4", "Secret.docx", confidentiality="confidential"),
        file("F5", "Open.docx", locked_by="Ana"),
        file("F6", "Memo.docx", confidentiality="internal"),
    ]
    trash = [trashed("T1", "Note.docx", 30), trashed("T2", "Gone.docx", 31), trashed("T3", "Film.mp4", 1, 50)]
    return FileStore(
        FileStoreState(
            now=NOW,
            account=Account(owner_name="Olga Owner", plan="Basic", quota_mb=100),
            folders={i: Folder(folder_id=i, folder_name=n, parent_id=None, read_only=r) for i, n, r in folders},
            files={item.file_id: item for item in files},
            trash={item.trash_id: item for item in trash},
            versions={item.version_id: item for item in (version("V1", 1, 91), version("V2", 2, 90))},
            tags={"G1": Tag(tag_id="G1", tag_name="final", colour="red")},
            collaborators={
                "C1": Collaborator(collaborator_id="C1", person_name="Ana", email=ANA, external=False),
                "C2": Collaborator(collaborator_id="C2", person_name="Ben", email=BEN, external=True),
            },
            counters={"file": 6, "version": 2, "trash": 3},
        )
    )


def refused(home: FileStore, tool: str, reason: str, **arguments: Any) -> None:
    before = home.dump()
    result = home.call(tool, arguments)
    assert result.error == "refused", result.content
    assert reason in result.text
    assert home.dump() == before


def passes(home: FileStore, tool: str, **arguments: Any) -> Any:
    result = home.call(tool, arguments)
    assert result.ok, result.content
    return result.content


def test_copies_and_restored_files_must_fit_the_quota(store: FileStore) -> None:
    refused(store, "restore_from_trash", "only 40.0 MB of the quota are free", trash_id="T3")
    passes(store, "delete_file", file_id="F6")
    assert passes(store, "restore_from_trash", trash_id="T3")["file_name"] == "Film.mp4"
    refused(store, "copy_file", "does not fit, since only 0.0 MB", file_id="F1", folder_id="D2")
    store.state.account.quota_mb = 110
    assert passes(store, "copy_file", file_id="F1", folder_id="D2")["file_name"] == "Copy of Plan.docx"


def test_read_only_folders_stay_as_they_are(store: FileStore) -> None:
    refused(store, "move_file", "Archive is read-only", file_id="F3", folder_id="D1")
    refused(store, "move_file", "Archive is read-only", file_id="F1", folder_id="D3")
    refused(store, "copy_file", "Archive is read-only", file_id="F1", folder_id="D3")
    refused(store, "delete_file", "Archive is read-only", file_id="F3")
    assert passes(store, "copy_file", file_id="F3", folder_id="D1")["folder_name"] == "Home"
    assert passes(store, "move_file", file_id="F4", folder_id="D2")["folder_name"] == "Work"


def test_locked_files_are_left_alone(store: FileStore) -> None:
    store.state.versions["V3"] = version("V3", 1, 5, "F5")
    refused(store, "move_file", "locked while Ana is editing", file_id="F5", folder_id="D2")
    refused(store, "delete_file", "locked while Ana is editing", file_id="F5")
    refused(store, "restore_version", "locked while Ana is editing", file_id="F5", version_id="V3")
    store.state.files["F5"].locked_by = None
    assert passes(store, "restore_version", file_id="F5", version_id="V3")["size_mb"] == 8
    assert passes(store, "move_file", file_id="F5", folder_id="D2")["folder_name"] == "Work"


def test_names_are_unique_within_a_folder(store: FileStore) -> None:
    refused(store, "move_file", "already holds a file named Plan.docx", file_id="F1", folder_id="D2")
    refused(store, "move_file", "already in Home", file_id="F1", folder_id="D1")
    store.state.files["F1"].file_name = "note.docx"
    refused(store, "restore_from_trash", "already holds a file named Note.docx", trash_id="T1")
    store.state.files["F1"].file_name = "Other.docx"
    assert passes(store, "restore_from_trash", trash_id="T1")["folder_name"] == "Home"
    passes(store, "copy_file", file_id="F2", folder_id="D1")
    refused(store, "copy_file", "already holds a file named Copy of", file_id="F2", folder_id="D1")


def test_shares_have_limits(store: FileStore) -> None:
    refused(store, "share_file", "may only view files", file_id="F1", email=BEN, role="editor")
    refused(store, "share_file", "is confidential", file_id="F4", email=BEN, role="viewer")
    refused(store, "share_file", "nobody with the email", file_id="F1", email="zoe@example.com", role="viewer")
    assert passes(store, "share_file", file_id="F1", email=BEN, role="viewer")["outcome"] == "shared"
    refused(store, "share_file", "already viewer", file_id="F1", email=BEN, role="viewer")
    assert passes(store, "share_file", file_id="F4", email=ANA, role="editor")["role"] == "editor"
    assert passes(store, "share_file", file_id="F4", email=ANA, role="viewer")["outcome"] == "changed"
    for n in range(4):
        store.state.shares[f"X{n}"] = Share(
            share_id=f"X{n}", file_id="F1", collaborator_id=f"C{n + 10}", role="viewer", shared_on=NOW.date()
        )
    refused(store, "share_file", "5 people, which is the limit", file_id="F1", email=ANA, role="viewer")


def test_files_that_others_edit_are_not_deleted(store: FileStore) -> None:
    share_id = passes(store, "share_file", file_id="F1", email=ANA, role="editor")["share_id"]
    refused(store, "delete_file", "Ana may edit Plan.docx", file_id="F1")
    assert passes(store, "revoke_share", share_id=share_id)["outcome"] == "removed"
    passes(store, "share_file", file_id="F1", email=BEN, role="viewer")
    passes(store, "create_share_link", file_id="F1", expires_on="2026-05-20")
    assert passes(store, "delete_file", file_id="F1")["restore_until"] == "2026-06-11"
    assert not store.state.shares and not store.state.links


def test_links_end_in_time(store: FileStore) -> None:
    refused(store, "create_share_link", "confidential and gets no link", file_id="F4", expires_on="2026-05-13")
    refused(store, "create_share_link", "end after 30 days", file_id="F1", expires_on="2026-06-12")
    refused(store, "create_share_link", "end after 7 days", file_id="F6", expires_on="2026-05-20")
    refused(store, "create_share_link", "in the past", file_id="F1", expires_on="2026-05-11")
    made = passes(store, "create_share_link", file_id="F6", expires_on="2026-05-19")
    refused(store, "create_share_link", "already has a link", file_id="F6", expires_on="2026-05-19")
    assert passes(store, "find_file", file_name="memo.docx")["link_until"] == made["ends_on"]
    store.state.now += timedelta(days=8)
    assert passes(store, "create_share_link", file_id="F6", expires_on="2026-05-21")["url"] != made["url"]


def test_trash_and_versions_are_kept_for_a_time(store: FileStore) -> None:
    refused(store, "restore_from_trash", "only until 2026-05-11", trash_id="T2")
    rows = passes(store, "list_trash")["result"]
    assert "T2" in store.state.trash and {row["trash_id"] for row in rows} == {"T1", "T3"}
    assert passes(store, "get_storage_usage")["in_trash"] == 2
    assert passes(store, "restore_from_trash", trash_id="T1")["file_name"] == "Note.docx"
    refused(store, "restore_version", "more than 90 days old", file_id="F1", version_id="V1")
    refused(store, "restore_version", "no version of Memo.docx", file_id="F6", version_id="V2")
    passes(store, "restore_version", file_id="F1", version_id="V2")
    assert [row["version_number"] for row in passes(store, "list_versions", file_id="F1")["result"]] == [3, 2, 1]


def test_a_tidy_afternoon(store: FileStore) -> None:
    folder_id = passes(store, "find_folder", folder_name="work")["folder_id"]
    file_id = passes(store, "find_file", file_name="Memo.docx")["file_id"]
    passes(store, "move_file", file_id=file_id, folder_id=folder_id)
    inside = passes(store, "list_files", folder_id=folder_id)["result"]
    assert {row["file_name"] for row in inside} == {"Plan.docx", "Memo.docx"}
    passes(store, "share_file", file_id=file_id, email=ANA, role="commenter")
    assert passes(store, "list_shares", file_id=file_id)["result"][0]["person_name"] == "Ana"
    assert len(passes(store, "search_files", file_type="document", tag_name="final")["result"]) == 6
    refused(store, "search_files", "no tag named", file_type="document", tag_name="none")
    assert passes(store, "get_storage_usage")["free_mb"] == 40
    passes(store, "delete_file", file_id=file_id)
    assert passes(store, "list_trash")["result"][0]["item_name"] == "Memo.docx"


@pytest.mark.parametrize("seed", range(1, 9))
def test_seed_states_keep_the_rules(seed: int) -> None:
    state = FileStore.seed_state("medium", seed)
    assert state == FileStore.seed_state("medium", seed)
    assert sum(item.size_mb for item in state.files.values()) <= state.account.quota_mb
    assert len({item.file_name for item in state.files.values()}) == len(state.files)
    assert len({item.folder_name for item in state.folders.values()}) == len(state.folders)
    for share in state.shares.values():
        shared, person = state.files[share.file_id], state.collaborators[share.collaborator_id]
        assert not person.external or (share.role == "viewer" and shared.confidentiality != "confidential")
        assert shared.created_at.date() <= share.shared_on <= state.now.date()
    for link in state.links.values():
        days = (link.ends_on - state.now.date()).days
        assert state.files[link.file_id].confidentiality != "confidential" and days <= 7
    for made in state.versions.values():
        owner = state.files[made.file_id]
        assert owner.created_at <= made.saved_at <= owner.modified_at <= state.now
        assert made.version_number < owner.version_number
    assert all(item.folder_id in state.folders for item in [*state.files.values(), *state.trash.values()])


@pytest.mark.parametrize("seed", range(1, 5))
def test_folders_and_deleted_files_are_where_people_would_have_them(seed: int) -> None:
    state = FileStore.seed_state("medium", seed)
    themes = {theme.name: theme for theme in THEMES}
    for folder in state.folders.values():
        if folder.parent_id is not None:
            assert state.folders[folder.parent_id].folder_name == themes[folder.folder_name].within
    fitting = [item for item in state.trash.values() if item.item_name not in TRASHED]
    assert len(fitting) >= len(state.trash) // 2
    assert all(item.item_name in themes[state.folders[item.folder_id].folder_name].files for item in fitting)


def test_a_file_tells_by_its_size_which_version_was_brought_back():
    sizes: dict[str, list[float]] = {}
    for seed in range(20):
        state = FileStore.seed_state("large", seed)
        for version in state.versions.values():
            sizes.setdefault(f"{seed} {version.file_id}", []).append(version.size_mb)
        for name, file in state.files.items():
            sizes.setdefault(f"{seed} {name}", []).append(file.size_mb)
    assert max(map(len, sizes.values())) > 2
    assert all(len(set(each)) == len(each) for each in sizes.values())
