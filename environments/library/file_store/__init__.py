"""A person's cloud file store."""

from datetime import date, datetime, timedelta

from trajsmith.environments.library.file_store.seeds import make_state
from trajsmith.environments.library.file_store.state import (
    Collaborator,
    File,
    FileInfo,
    FileRow,
    FileStoreState,
    FileType,
    Folder,
    FolderInfo,
    LinkInfo,
    Share,
    ShareChange,
    ShareLink,
    ShareRole,
    ShareRow,
    StorageUse,
    TrashItem,
    TrashRow,
    Version,
    VersionRow,
)
from trajsmith.environments.native import Environment, tool
from trajsmith.records import ConfirmationRule, ToolError

TRASH_DAYS = 30
VERSION_DAYS = 90
PEOPLE_PER_FILE = 5
LINK_DAYS = {"public": 30, "internal": 7}


class FileStore(Environment[FileStoreState]):
    """Cloud file store of one owner: folders, files, earlier versions, shares, share links and trash."""

    domain = "office/files"
    policy = """
    # Rules of the file store

    1. Files together never take more than the quota of the plan; trash and earlier versions do not count. Copies and
       restored files must fit.
    2. Read-only folders stay as they are: nothing is moved or copied into them, moved out of them or deleted in them.
    3. While somebody has a file locked for editing, it is not moved, deleted or put back to an earlier version.
    4. No two files of a folder have the same name.
    5. A file can be shared with at most 5 people. People from outside may only view, and never see confidential files.
    6. A file that somebody else may edit is deleted only after these shares have been removed. Deleting a file ends its
       other shares and its link.
    7. Share links end after 30 days at most, those of internal files after 7; confidential files get none. A file has
       one working link at a time.
    8. Deleted files can be restored for 30 days, earlier versions for 90 days.
    """

    @classmethod
    def seed_state(cls, size: str, seed: int) -> FileStoreState:
        return make_state(size, seed)

    @tool(effect="read")
    def find_folder(self, folder_name: str) -> FolderInfo:
        """Find a folder by its name: its files without those of its subfolders, and at most 10 subfolders.

        Args:
            folder_name: Name of the folder.
        """
        wanted = folder_name.strip().casefold()
        folders = self.state.folders.values()
        match = next((folder for folder in folders if folder.folder_name.casefold() == wanted), None)
        if match is None:
            raise ToolError(f"there is no folder named {folder_name}")
        files = self._files_in(match.folder_id)
        return FolderInfo(
            folder_id=match.folder_id,
            folder_name=match.folder_name,
            path=self._path(match),
            files=len(files),
            size_mb=_total(files),
            read_only=match.read_only,
            subfolders=[folder.folder_name for folder in folders if folder.parent_id == match.folder_id][:10],
        )

    @tool(effect="read")
    def list_files(self, folder_id: str) -> list[FileRow]:
        """List the files of a folder, last changed first, at most 10.

        Args:
            folder_id: Folder to look into.
        """
        self.lookup(self.state.folders, folder_id, "folder")
        return _rows(self._files_in(folder_id))

    @tool(effect="read")
    def find_file(self, file_name: str) -> FileInfo:
        """Find a file by its name; of several, the one that was changed last. `people` counts those it is shared with.

        Args:
            file_name: Name of the file with its ending, for example "Guest List.xlsx".
        """
        wanted = file_name.strip().casefold()
        matches = [file for file in self.state.files.values() if file.file_name.casefold() == wanted]
        if not matches:
            raise ToolError(f"there is no file named {file_name}")
        return self._info(max(matches, key=lambda file: file.modified_at))

    @tool(effect="read")
    def search_files(self, file_type: FileType, tag_name: str | None = None) -> list[FileRow]:
        """Search all folders for files of a type, last changed first, at most 10.

        Args:
            file_type: Type of the files.
            tag_name: Only files that carry this tag.
        """
        tag = next((tag for tag in self.state.tags.values() if tag.tag_name == (tag_name or "").strip().lower()), None)
        if tag_name is not None and tag is None:
            raise ToolError(f"there is no tag named {tag_name}")
        matches = [file for file in self.state.files.values() if file.file_type == file_type]
        return _rows([file for file in matches if tag is None or tag.tag_id in file.tag_ids])

    @tool(effect="read")
    def get_storage_usage(self) -> StorageUse:
        """Show how much of the plan's space is used and free; `in_trash` counts files that can be restored."""
        account = self.state.account
        used = _total(list(self.state.files.values()))
        largest = max(self.state.folders.values(), key=lambda folder: _total(self._files_in(folder.folder_id)))
        return StorageUse(
            plan=account.plan,
            quota_mb=account.quota_mb,
            used_mb=used,
            free_mb=round(account.quota_mb - used, 1),
            files=len(self.state.files),
            in_trash=len(self._restorable()),
            largest_folder=largest.folder_name,
        )

    @tool(effect="write", confirm="never")
    def move_file(self, file_id: str, folder_id: str) -> FileInfo:
        """Move a file into another folder.

        Args:
            file_id: File to move.
            folder_id: Folder that it goes to.
        """
        file = self._changeable(file_id)
        folder = self._writable(folder_id)
        if file.folder_id == folder_id:
            raise ToolError(f"{file.file_name} is already in {folder.folder_name}")
        self._check_name(file.file_name, folder_id)
        file.folder_id = folder_id
        return self._info(file)

    @tool(effect="write", confirm="never")
    def copy_file(self, file_id: str, folder_id: str) -> FileInfo:
        """Put a copy of a file into a folder; the copy is named "Copy of" and the name, and is not shared.

        Args:
            file_id: File to copy.
            folder_id: Folder that the copy goes to.
        """
        file = self.lookup(self.state.files, file_id, "file")
        self._writable(folder_id)
        name = f"Copy of {file.file_name}"
        self._check_name(name, folder_id)
        self._check_space(file.size_mb, name)
        changes = {
            "file_id": self.new_id("file", "F{}"),
            "file_name": name,
            "folder_id": folder_id,
            "version_number": 1,
            "created_at": self.state.now,
            "modified_at": self.state.now,
            "locked_by": None,
            "tag_ids": [*file.tag_ids],
        }
        copy = file.model_copy(update=changes)
        self.state.files[copy.file_id] = copy
        return self._info(copy)

    @tool(
        effect="write",
        destructive=True,
        confirm=ConfirmationRule(always=True, because="its shares and its link end, and they do not come back"),
    )
    def delete_file(self, file_id: str) -> TrashRow:
        """Move a file to the trash; its shares and its link end.

        Args:
            file_id: File to delete.
        """
        file = self._changeable(file_id)
        shares = self._shares_of(file_id)
        editors = [self._person(share).person_name for share in shares if share.role == "editor"]
        if editors:
            raise ToolError(
                f"{' and '.join(editors)} may edit {file.file_name}, and that access has to be removed first"
            )
        item = TrashItem(
            trash_id=self.new_id("trash", "T{}"),
            item_name=file.file_name,
            deleted_at=self.state.now,
            **file.model_dump(exclude={"file_name", "locked_by"}),
        )
        self.state.trash[item.trash_id] = item
        for share in shares:
            del self.state.shares[share.share_id]
        for link in [link for link in self.state.links.values() if link.file_id == file_id]:
            del self.state.links[link.link_id]
        del self.state.files[file_id]
        return _trash_row(item)

    @tool(effect="read")
    def list_trash(self) -> list[TrashRow]:
        """List deleted files that can still be restored, last deleted first, at most 10, and until when they can."""
        items = sorted(self._restorable(), key=lambda item: item.deleted_at, reverse=True)
        return [_trash_row(item) for item in items[:10]]

    @tool(effect="write", confirm="never")
    def restore_from_trash(self, trash_id: str) -> FileInfo:
        """Put a deleted file back into the folder that it was in.

        Args:
            trash_id: Deleted file.
        """
        item = self.lookup(self.state.trash, trash_id, "deleted file")
        until = _restore_until(item)
        if self.state.now.date() > until:
            raise ToolError(f"{item.item_name} could be restored only until {until}")
        self._writable(item.folder_id)
        self._check_name(item.item_name, item.folder_id)
        self._check_space(item.size_mb, item.item_name)
        attributes = item.model_dump(exclude={"trash_id", "item_name", "deleted_at"})
        file = File(file_name=item.item_name, locked_by=None, **attributes)
        self.state.files[file.file_id] = file
        del self.state.trash[trash_id]
        return self._info(file)

    @tool(effect="read")
    def list_versions(self, file_id: str) -> list[VersionRow]:
        """List the earlier versions of a file, newest first, at most 10.

        Args:
            file_id: File to look at.
        """
        self.lookup(self.state.files, file_id, "file")
        versions = [version for version in self.state.versions.values() if version.file_id == file_id]
        newest = sorted(versions, key=lambda version: version.version_number, reverse=True)[:10]
        return [VersionRow(**version.model_dump(exclude={"file_id"})) for version in newest]

    @tool(effect="write", confirm="never")
    def restore_version(self, file_id: str, version_id: str) -> FileInfo:
        """Put a file back to an earlier version; what it holds now is kept as a version.

        Args:
            file_id: File to change.
            version_id: Earlier version of it.
        """
        file = self._changeable(file_id)
        version = self.lookup(self.state.versions, version_id, "version")
        if version.file_id != file_id:
            raise ToolError(f"that is no version of {file.file_name}")
        if self.state.now - version.saved_at > timedelta(days=VERSION_DAYS):
            raise ToolError(f"version {version.version_number} is more than {VERSION_DAYS} days old")
        self._check_space(version.size_mb - file.size_mb, file.file_name)
        replaced = Version(
            version_id=self.new_id("version", "V{}"),
            file_id=file_id,
            version_number=file.version_number,
            saved_at=file.modified_at,
            saved_by=self.state.account.owner_name,
            size_mb=file.size_mb,
        )
        self.state.versions[replaced.version_id] = replaced
        file.size_mb, file.modified_at = version.size_mb, self.state.now
        file.version_number += 1
        return self._info(file)

    @tool(effect="read")
    def list_shares(self, file_id: str) -> list[ShareRow]:
        """List the people that a file is shared with, and what they may do.

        Args:
            file_id: File to look at.
        """
        self.lookup(self.state.files, file_id, "file")
        return [self._share_row(share) for share in self._shares_of(file_id)]

    @tool(
        effect="write",
        confirm=ConfirmationRule(arguments={"role": ("editor",)}, because="an editor can change what the file holds"),
    )
    def share_file(self, file_id: str, email: str, role: ShareRole) -> ShareChange:
        """Share a file with a known person, or change what that person may do with it.

        Args:
            file_id: File to share.
            email: Email address of the person.
            role: Whether the person may view, comment or edit.
        """
        file = self.lookup(self.state.files, file_id, "file")
        person = self._person_by_email(email)
        if person.external and file.confidentiality == "confidential":
            raise ToolError(f"{file.file_name} is confidential and {person.person_name} is from outside")
        if person.external and role != "viewer":
            raise ToolError(f"{person.person_name} is from outside and may only view files")
        shares = self._shares_of(file_id)
        share = next((share for share in shares if share.collaborator_id == person.collaborator_id), None)
        if share is not None:
            if share.role == role:
                raise ToolError(f"{person.person_name} is already {role} of {file.file_name}")
            share.role = role
            return self._share_change(share, "changed")
        if len(shares) >= PEOPLE_PER_FILE:
            raise ToolError(f"{file.file_name} is already shared with {PEOPLE_PER_FILE} people, which is the limit")
        share = Share(
            share_id=self.new_id("share", "S{}"),
            file_id=file_id,
            collaborator_id=person.collaborator_id,
            role=role,
            shared_on=self.state.now.date(),
        )
        self.state.shares[share.share_id] = share
        return self._share_change(share, "shared")

    @tool(
        effect="write",
        destructive=True,
        confirm=ConfirmationRule(always=True, because="the person loses access at once"),
    )
    def revoke_share(self, share_id: str) -> ShareChange:
        """Stop sharing a file with a person; the role in the result is the one that the person had.

        Args:
            share_id: Share to remove.
        """
        share = self.lookup(self.state.shares, share_id, "share")
        del self.state.shares[share_id]
        return self._share_change(share, "removed")

    @tool(
        effect="write",
        confirm=ConfirmationRule(
            always=True, because="anybody who has the link can view the file, and a link cannot be called back"
        ),
    )
    def create_share_link(self, file_id: str, expires_on: date) -> LinkInfo:
        """Make a link with which anybody can view a file until a day.

        Args:
            file_id: File to make a link for.
            expires_on: Last day of the link.
        """
        file = self.lookup(self.state.files, file_id, "file")
        today = self.state.now.date()
        if file.confidentiality == "confidential":
            raise ToolError(f"{file.file_name} is confidential and gets no link")
        working = self._working_link(file_id)
        if working is not None:
            raise ToolError(f"{file.file_name} already has a link, which works until {working.ends_on}")
        if expires_on < today:
            raise ToolError("the last day of a link must not lie in the past")
        longest = max(LINK_DAYS.values())
        if expires_on > today + timedelta(days=longest):
            raise ToolError(f"share links end after {longest} days at most")
        days = LINK_DAYS[file.confidentiality]
        if expires_on > today + timedelta(days=days):
            raise ToolError(f"links to {file.confidentiality} files end after {days} days at most")
        link = ShareLink(
            link_id=self.new_id("link", "K{}"),
            file_id=file_id,
            ends_on=expires_on,
            url=f"https://files.example.com/s/{self.random().randrange(36**5, 36**6):x}",
        )
        self.state.links[link.link_id] = link
        return LinkInfo(file_name=file.file_name, url=link.url, ends_on=link.ends_on)

    def _files_in(self, folder_id: str) -> list[File]:
        return [file for file in self.state.files.values() if file.folder_id == folder_id]

    def _path(self, folder: Folder) -> str:
        parent = self.state.folders[folder.parent_id] if folder.parent_id else None
        return f"{self._path(parent)} / {folder.folder_name}" if parent else folder.folder_name

    def _info(self, file: File) -> FileInfo:
        link = self._working_link(file.file_id)
        return FileInfo(
            file_id=file.file_id,
            file_name=file.file_name,
            file_type=file.file_type,
            size_mb=file.size_mb,
            folder_name=self.state.folders[file.folder_id].folder_name,
            modified_at=file.modified_at,
            confidentiality=file.confidentiality,
            tags=[self.state.tags[tag_id].tag_name for tag_id in file.tag_ids],
            locked_by=file.locked_by,
            people=len(self._shares_of(file.file_id)),
            link_until=link.ends_on if link else None,
        )

    def _restorable(self) -> list[TrashItem]:
        today = self.state.now.date()
        return [item for item in self.state.trash.values() if _restore_until(item) >= today]

    def _shares_of(self, file_id: str) -> list[Share]:
        return [share for share in self.state.shares.values() if share.file_id == file_id]

    def _working_link(self, file_id: str) -> ShareLink | None:
        today = self.state.now.date()
        links = self.state.links.values()
        return next((link for link in links if link.file_id == file_id and link.ends_on >= today), None)

    def _person(self, share: Share) -> Collaborator:
        return self.state.collaborators[share.collaborator_id]

    def _person_by_email(self, email: str) -> Collaborator:
        for person in self.state.collaborators.values():
            if person.email == email.strip().lower():
                return person
        raise ToolError(f"nobody with the email {email} is among the known people")

    def _share_row(self, share: Share) -> ShareRow:
        person = self._person(share)
        return ShareRow(
            share_id=share.share_id,
            person_name=person.person_name,
            email=person.email,
            role=share.role,
            shared_on=share.shared_on,
        )

    def _share_change(self, share: Share, outcome: str) -> ShareChange:
        return ShareChange.model_validate(
            {
                "share_id": share.share_id,
                "file_name": self.state.files[share.file_id].file_name,
                "person_name": self._person(share).person_name,
                "role": share.role,
                "outcome": outcome,
            }
        )

    def _changeable(self, file_id: str) -> File:
        file = self.lookup(self.state.files, file_id, "file")
        if file.locked_by is not None:
            raise ToolError(f"{file.file_name} is locked while {file.locked_by} is editing it")
        self._writable(file.folder_id)
        return file

    def _writable(self, folder_id: str) -> Folder:
        folder = self.lookup(self.state.folders, folder_id, "folder")
        if folder.read_only:
            raise ToolError(f"the folder {folder.folder_name} is read-only")
        return folder

    def _check_name(self, file_name: str, folder_id: str) -> None:
        if any(file.file_name.casefold() == file_name.casefold() for file in self._files_in(folder_id)):
            raise ToolError(f"{self.state.folders[folder_id].folder_name} already holds a file named {file_name}")

    def _check_space(self, more_mb: float, file_name: str) -> None:
        free = round(self.state.account.quota_mb - _total(list(self.state.files.values())), 1)
        if more_mb > free:
            raise ToolError(f"{file_name} does not fit, since only {free:.1f} MB of the quota are free")


def _total(files: list[File]) -> float:
    return round(sum(file.size_mb for file in files), 1)


def _rows(files: list[File]) -> list[FileRow]:
    newest = sorted(files, key=lambda file: file.modified_at, reverse=True)[:10]
    return [
        FileRow(
            file_id=file.file_id,
            file_name=file.file_name,
            file_type=file.file_type,
            size_mb=file.size_mb,
            modified_at=file.modified_at,
            confidentiality=file.confidentiality,
        )
        for file in newest
    ]


def _restore_until(item: TrashItem) -> date:
    deleted: datetime = item.deleted_at
    return deleted.date() + timedelta(days=TRASH_DAYS)


def _trash_row(item: TrashItem) -> TrashRow:
    return TrashRow(
        trash_id=item.trash_id,
        item_name=item.item_name,
        file_type=item.file_type,
        size_mb=item.size_mb,
        deleted_at=item.deleted_at,
        restore_until=_restore_until(item),
    )


__all__ = ["FileStore"]
