"""What the file store knows: folders, files and their versions, tags, people, shares, links, trash."""

from datetime import date, datetime
from typing import Literal

from trajsmith.environments.native import EnvironmentState, StateModel

FileType = Literal["document", "spreadsheet", "presentation", "image", "video", "archive"]
Confidentiality = Literal["public", "internal", "confidential"]
ShareRole = Literal["viewer", "commenter", "editor"]


class Account(StateModel):
    owner_name: str
    plan: str
    quota_mb: float


class Folder(StateModel):
    folder_id: str
    folder_name: str
    parent_id: str | None
    read_only: bool


class File(StateModel):
    file_id: str
    file_name: str
    folder_id: str
    file_type: FileType
    size_mb: float
    created_at: datetime
    modified_at: datetime
    version_number: int
    confidentiality: Confidentiality
    locked_by: str | None
    """Name of the person who has the file open for editing."""
    tag_ids: list[str]


class Version(StateModel):
    """An earlier version of a file; the current one is the file itself."""

    version_id: str
    file_id: str
    version_number: int
    saved_at: datetime
    saved_by: str
    size_mb: float


class Tag(StateModel):
    tag_id: str
    tag_name: str
    colour: str


class Collaborator(StateModel):
    collaborator_id: str
    person_name: str
    email: str
    external: bool


class Share(StateModel):
    share_id: str
    file_id: str
    collaborator_id: str
    role: ShareRole
    shared_on: date


class ShareLink(StateModel):
    link_id: str
    file_id: str
    url: str
    ends_on: date


class TrashItem(StateModel):
    """A deleted file, with all that is needed to put it back."""

    trash_id: str
    item_name: str
    file_id: str
    folder_id: str
    file_type: FileType
    size_mb: float
    created_at: datetime
    modified_at: datetime
    version_number: int
    confidentiality: Confidentiality
    tag_ids: list[str]
    deleted_at: datetime


class FileStoreState(EnvironmentState):
    account: Account
    folders: dict[str, Folder] = {}
    files: dict[str, File] = {}
    versions: dict[str, Version] = {}
    tags: dict[str, Tag] = {}
    collaborators: dict[str, Collaborator] = {}
    shares: dict[str, Share] = {}
    links: dict[str, ShareLink] = {}
    trash: dict[str, TrashItem] = {}


# What the tools answer with


class FolderInfo(StateModel):
    folder_id: str
    folder_name: str
    path: str
    files: int
    size_mb: float
    read_only: bool
    subfolders: list[str]


class FileRow(StateModel):
    file_id: str
    file_name: str
    file_type: FileType
    size_mb: float
    modified_at: datetime
    confidentiality: Confidentiality


class FileInfo(StateModel):
    file_id: str
    file_name: str
    folder_name: str
    file_type: FileType
    size_mb: float
    modified_at: datetime
    confidentiality: Confidentiality
    tags: list[str]
    locked_by: str | None
    people: int
    link_until: date | None


class VersionRow(StateModel):
    version_id: str
    version_number: int
    saved_at: datetime
    saved_by: str
    size_mb: float


class ShareRow(StateModel):
    share_id: str
    person_name: str
    email: str
    role: ShareRole
    shared_on: date


class ShareChange(StateModel):
    share_id: str
    file_name: str
    person_name: str
    role: ShareRole
    outcome: Literal["shared", "changed", "removed"]


class LinkInfo(StateModel):
    file_name: str
    url: str
    ends_on: date


class TrashRow(StateModel):
    trash_id: str
    item_name: str
    file_type: FileType
    size_mb: float
    deleted_at: datetime
    restore_until: date


class StorageUse(StateModel):
    plan: str
    quota_mb: float
    used_mb: float
    free_mb: float
    files: int
    in_trash: int
    largest_folder: str
