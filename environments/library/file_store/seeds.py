"""Generator of the file store's initial states."""

import random
from datetime import date, datetime, timedelta
from typing import NamedTuple

from trajsmith.environments.library import _people
from trajsmith.environments.library.file_store.state import (
    Account,
    Collaborator,
    File,
    FileStoreState,
    FileType,
    Folder,
    Share,
    ShareLink,
    Tag,
    TrashItem,
    Version,
)
from trajsmith.records import derive_seed


class Extent(NamedTuple):
    """Number of entries in a store of one size."""

    folders: int
    files: tuple[int, int]
    """Fewest and most files of a folder."""
    people: int
    tags: int
    trash: int


class Theme(NamedTuple):
    """A folder that people have, with names for its files."""

    within: str
    """Name of the folder that it may lie in; empty for one that always stands at the top."""
    name: str
    files: tuple[str, ...]
    secret: bool = False


EXTENTS = {
    "small": Extent(9, (3, 4), 7, 5, 6),
    "medium": Extent(18, (3, 5), 14, 8, 12),
    "large": Extent(240, (5, 6), 60, 10, 90),
}
TYPES: dict[str, FileType] = {
    "docx": "document",
    "pdf": "document",
    "xlsx": "spreadsheet",
    "pptx": "presentation",
    "jpg": "image",
    "png": "image",
    "mp4": "video",
    "zip": "archive",
}
SIZES: dict[FileType, tuple[float, float]] = {
    "document": (0.1, 8),
    "spreadsheet": (0.1, 12),
    "presentation": (2, 60),
    "image": (1.5, 18),
    "video": (90, 700),
    "archive": (20, 260),
}
THEMES = (
    Theme(
        "",
        "Projects",
        (
            "Kickoff Notes.docx",
            "Project Plan.xlsx",
            "Risk List.xlsx",
            "Steering Deck.pptx",
            "Team Photo.jpg",
            "Handover.zip",
        ),
    ),
    Theme(
        "",
        "Clients",
        (
            "Offer Letter.docx",
            "Price List.xlsx",
            "Client Pitch.pptx",
            "Reference Logos.zip",
            "Site Visit.mp4",
            "Contact Sheet.xlsx",
        ),
    ),
    Theme(
        "Clients",
        "Contracts",
        (
            "Lease Agreement.pdf",
            "Supplier Contract.pdf",
            "Signed Terms.pdf",
            "Contract Tracker.xlsx",
            "Amendments.docx",
            "Old Contracts.zip",
        ),
        True,
    ),
    Theme(
        "Projects",
        "Meetings",
        (
            "Weekly Minutes.docx",
            "Action Points.xlsx",
            "Town Hall.pptx",
            "Town Hall Recording.mp4",
            "Whiteboard.jpg",
            "Agenda Draft.docx",
        ),
    ),
    Theme(
        "",
        "Marketing",
        (
            "Campaign Brief.docx",
            "Media Budget.xlsx",
            "Brand Slides.pptx",
            "Launch Teaser.mp4",
            "Banner Set.zip",
            "Logo Final.png",
        ),
    ),
    Theme(
        "",
        "Hiring",
        (
            "Job Advert.docx",
            "Interview Grid.xlsx",
            "Shortlist.xlsx",
            "Onboarding Deck.pptx",
            "Offer Template.docx",
            "Applications.zip",
        ),
        True,
    ),
    Theme(
        "",
        "Taxes",
        (
            "Tax Return.pdf",
            "Income Overview.xlsx",
            "Donation Receipts.zip",
            "Tax Letter.pdf",
            "Deductions.xlsx",
            "Adviser Notes.docx",
        ),
        True,
    ),
    Theme(
        "",
        "Budget",
        (
            "Household Budget.xlsx",
            "Savings Plan.xlsx",
            "Bills Overview.xlsx",
            "Loan Offer.pdf",
            "Budget Talk.pptx",
            "Insurance Summary.pdf",
        ),
    ),
    Theme(
        "Budget",
        "Invoices",
        (
            "Plumber Invoice.pdf",
            "Internet Bill.pdf",
            "Electricity Bill.pdf",
            "Invoice Register.xlsx",
            "Scanned Receipts.zip",
            "Car Repair Bill.pdf",
        ),
    ),
    Theme(
        "",
        "House",
        (
            "Floor Plan.pdf",
            "Garden Ideas.pptx",
            "Paint Colours.png",
            "Roof Survey.pdf",
            "Furniture Costs.xlsx",
            "House Tour.mp4",
        ),
    ),
    Theme(
        "House",
        "Renovation",
        (
            "Kitchen Quote.pdf",
            "Builder Schedule.xlsx",
            "Bathroom Sketch.png",
            "Before Pictures.zip",
            "Progress Film.mp4",
            "Tile Choices.docx",
        ),
    ),
    Theme(
        "",
        "Recipes",
        (
            "Sourdough Guide.docx",
            "Meal Planner.xlsx",
            "Grandma's Soup.docx",
            "Cake Picture.jpg",
            "Pasta Class.mp4",
            "Recipe Cards.pdf",
        ),
    ),
    Theme(
        "",
        "Photos",
        (
            "Beach Day.jpg",
            "Birthday Party.jpg",
            "First Snow.jpg",
            "Family Portrait.png",
            "Photo Backup.zip",
            "Dance Recital.mp4",
        ),
    ),
    Theme(
        "",
        "Family Papers",
        (
            "Birth Certificate.pdf",
            "Passport Scan.pdf",
            "Family Tree.pptx",
            "Vaccination Record.pdf",
            "Will Draft.docx",
            "School Report.pdf",
        ),
        True,
    ),
    Theme(
        "",
        "Wedding",
        (
            "Guest List.xlsx",
            "Seating Plan.xlsx",
            "Speech.docx",
            "First Dance.mp4",
            "Invitation Design.png",
            "Wedding Album.zip",
        ),
    ),
    Theme(
        "",
        "Travel",
        (
            "Packing List.docx",
            "Trip Budget.xlsx",
            "Mountain View.jpg",
            "Drone Flight.mp4",
            "Hotel Booking.pdf",
            "Travel Diary.docx",
        ),
    ),
    Theme(
        "Travel",
        "Norway Trip",
        (
            "Fjord Route.pdf",
            "Ferry Tickets.pdf",
            "Northern Lights.jpg",
            "Cabin Rental.docx",
            "Hike Video.mp4",
            "Norway Costs.xlsx",
        ),
    ),
    Theme(
        "",
        "Studies",
        (
            "Thesis Draft.docx",
            "Reading List.docx",
            "Survey Data.xlsx",
            "Defence Slides.pptx",
            "Lecture Recording.mp4",
            "Source Papers.zip",
        ),
    ),
    Theme(
        "Studies",
        "Language Course",
        (
            "Vocabulary.xlsx",
            "Grammar Notes.docx",
            "Listening Practice.mp4",
            "Exam Sheet.pdf",
            "Course Slides.pptx",
            "Flash Cards.zip",
        ),
    ),
    Theme(
        "",
        "Choir",
        (
            "Sheet Music.pdf",
            "Concert Poster.png",
            "Rehearsal Dates.xlsx",
            "Summer Concert.mp4",
            "Member Dues.xlsx",
            "Programme Notes.docx",
        ),
    ),
)
TRASHED = (
    "Letter Draft.docx",
    "Mileage Sheet.xlsx",
    "Garden Picture.jpg",
    "Contacts Export.zip",
    "Screen Recording.mp4",
    "Parking Ticket.pdf",
    "Club Notes.docx",
    "Gift Voucher.pdf",
    "Phone Backup.zip",
    "Shopping Sums.xlsx",
    "Cat Clip.mp4",
)
TAGS = ("urgent", "to review", "final", "private", "reference", "waiting", "signed", "shared", "favourite", "printed")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple")
PLANS = (("Basic", 2048.0), ("Plus", 5120.0), ("Family", 15360.0), ("Studio", 51200.0), ("Archive", 512000.0))


def make_state(size: str, seed: int) -> FileStoreState:
    """A file store of the given size; the same seed gives the same store."""
    rng = random.Random(derive_seed("file_store", size, seed))
    extent = EXTENTS[size]
    now = datetime(2026, rng.randrange(1, 13), rng.randrange(1, 28), rng.randrange(7, 23), rng.choice((0, 10, 25, 40)))
    persons = _people.people(rng, extent.people + 1)
    account = Account(owner_name=persons[0].name, plan="Basic", quota_mb=0)
    state = FileStoreState(now=now, seed=seed, account=account)
    for name in rng.sample(TAGS, extent.tags):
        tag_id = _number(state, "tag", "G{}")
        state.tags[tag_id] = Tag(tag_id=tag_id, tag_name=name, colour=rng.choice(COLOURS))
    for person in persons[1:]:
        collaborator_id = _number(state, "collaborator", "C{}")
        state.collaborators[collaborator_id] = Collaborator(
            collaborator_id=collaborator_id, person_name=person.name, email=person.email, external=rng.random() < 0.3
        )
    _add_folders(state, rng, extent)
    _add_trash(state, rng, extent.trash)
    used = sum(file.size_mb for file in state.files.values())
    fitting = [plan for plan in PLANS if plan[1] >= used * 1.02 + 20]
    account.plan, account.quota_mb = fitting[0]
    return state


def _number(state: FileStoreState, kind: str, pattern: str) -> str:
    number = state.counters[kind] = state.counters.get(kind, 0) + 1
    return pattern.format(number)


def _add_folders(state: FileStoreState, rng: random.Random, extent: Extent) -> None:
    """One folder per theme; a large store has the themes again for every earlier year."""
    folder_ids: dict[str, str] = {}
    for number in range(extent.folders):
        if number % len(THEMES) == 0:
            themes = sorted(rng.sample(THEMES, len(THEMES))[: extent.folders], key=lambda theme: bool(theme.within))
        theme = themes[number % len(THEMES)]
        year = "" if number < len(THEMES) else f" {state.now.year - number // len(THEMES)}"
        folder_id = _number(state, "folder", "D{}")
        parent = folder_ids.get(theme.within + year) if rng.random() < 0.75 else None
        folder_ids[theme.name + year] = folder_id
        read_only = number > 2 and rng.random() < 0.12
        state.folders[folder_id] = Folder(
            folder_id=folder_id, folder_name=theme.name + year, parent_id=parent, read_only=read_only
        )
        for name in rng.sample(theme.files, rng.randint(*extent.files)):
            stem, _, ending = name.rpartition(".")
            _add_file(state, rng, folder_id, f"{stem}{year}.{ending}", theme.secret)


def _add_file(state: FileStoreState, rng: random.Random, folder_id: str, name: str, secret: bool) -> None:
    file_id = _number(state, "file", "F{}")
    file_type = TYPES[name.rpartition(".")[2]]
    modified = _people.moment_before(rng, state.now, rng.choice((4, 20, 60, 120)))
    created = modified - timedelta(days=rng.randrange(3, 160), minutes=rng.randrange(600))
    file = File(
        file_id=file_id,
        file_name=name,
        folder_id=folder_id,
        file_type=file_type,
        size_mb=round(rng.uniform(*SIZES[file_type]), 1),
        created_at=created,
        modified_at=modified,
        version_number=1,
        confidentiality=rng.choice(("confidential", "internal") if secret else ("public", "public", "internal")),
        locked_by=None,
        tag_ids=sorted(rng.sample(list(state.tags), rng.choice((0, 1, 1, 2)))),
    )
    state.files[file_id] = file
    if rng.random() < 0.5:
        _add_shares(state, rng, file)
    editors = [name for name, _ in _list_editors(state, file_id)]
    if editors and rng.random() < 0.4:
        file.locked_by = rng.choice(editors)
    if file_type in ("document", "spreadsheet", "presentation"):
        _add_versions(state, rng, file, rng.choice((1, 2, 2, 3)))
    elif rng.random() < 0.3:
        _add_versions(state, rng, file, 1)
    if file.confidentiality != "confidential" and rng.random() < 0.15:
        link_id = _number(state, "link", "K{}")
        state.links[link_id] = ShareLink(
            link_id=link_id,
            file_id=file_id,
            url=f"https://files.example.com/s/{rng.randrange(36**5, 36**6):x}",
            ends_on=state.now.date() + timedelta(days=rng.randrange(-9, 7)),
        )


def _add_versions(state: FileStoreState, rng: random.Random, file: File, count: int) -> None:
    editors = _list_editors(state, file.file_id)
    span = file.modified_at - file.created_at
    sizes = {file.size_mb}
    for step in range(count):
        version_id = _number(state, "version", "V{}")
        saved = (file.created_at + span * (step + rng.random() * 0.9) / count).replace(second=0, microsecond=0)
        writers = [state.account.owner_name, *(name for name, since in editors if since <= saved.date())]
        saved_by = rng.choice(writers)
        size = round(max(0.1, file.size_mb * rng.uniform(0.6, 1.1)), 1)
        while size in sizes:  # so that the file tells which version was brought back
            size = round(size + 0.1, 1)
        sizes.add(size)
        state.versions[version_id] = Version(
            version_id=version_id,
            file_id=file.file_id,
            version_number=step + 1,
            saved_at=saved,
            saved_by=saved_by,
            size_mb=size,
        )
    file.version_number = count + 1


def _list_editors(state: FileStoreState, file_id: str) -> list[tuple[str, date]]:
    """Return (name, first day) of the people who may edit a file: only these lock it and save versions of it."""
    editors = (share for share in state.shares.values() if share.file_id == file_id and share.role == "editor")
    return [(state.collaborators[share.collaborator_id].person_name, share.shared_on) for share in editors]


def _add_shares(state: FileStoreState, rng: random.Random, file: File) -> None:
    secret = file.confidentiality == "confidential"
    allowed = [person for person in state.collaborators.values() if not (secret and person.external)]
    for person in rng.sample(allowed, min(len(allowed), rng.choice((1, 1, 2, 3)))):
        share_id = _number(state, "share", "S{}")
        role = "viewer" if person.external else rng.choice(("viewer", "commenter", "commenter", "editor"))
        state.shares[share_id] = Share.model_validate(
            {
                "share_id": share_id,
                "file_id": file.file_id,
                "collaborator_id": person.collaborator_id,
                "role": role,
                "shared_on": (file.created_at + (state.now - file.created_at) * rng.random()).date(),
            }
        )


def _add_trash(state: FileStoreState, rng: random.Random, count: int) -> None:
    """Files that could have been in the folder which they were deleted from, and rubbish where there are no more."""
    writable = [folder.folder_id for folder in state.folders.values() if not folder.read_only]
    left = _list_unused_names(state, writable)
    rng.shuffle(left)
    for number in range(count):
        if number % len(TRASHED) == 0:
            names = rng.sample(TRASHED, len(TRASHED))
        if left:
            name, folder_id = left.pop()
        else:
            stem, _, ending = names[number % len(TRASHED)].rpartition(".")
            series = "" if number < len(TRASHED) else f" {number // len(TRASHED) + 1}"
            name, folder_id = f"{stem}{series}.{ending}", rng.choice(writable)
        file_type = TYPES[name.rpartition(".")[2]]
        trash_id, file_id = _number(state, "trash", "T{}"), _number(state, "file", "F{}")
        deleted = _people.moment_before(rng, state.now, 36)
        state.trash[trash_id] = TrashItem(
            trash_id=trash_id,
            item_name=name,
            file_id=file_id,
            folder_id=folder_id,
            file_type=file_type,
            size_mb=round(rng.uniform(*SIZES[file_type]), 1),
            version_number=1,
            created_at=deleted - timedelta(days=rng.randrange(20, 200)),
            modified_at=deleted - timedelta(days=rng.randrange(1, 20)),
            confidentiality="internal",
            tag_ids=[],
            deleted_at=deleted,
        )


def _list_unused_names(state: FileStoreState, folders: list[str]) -> list[tuple[str, str]]:
    """Return (name, folder) of files that a folder's theme has and the folder does not."""
    used = {(file.folder_id, file.file_name) for file in state.files.values()}
    names = {theme.name: theme.files for theme in THEMES}
    return [
        (name, folder_id)
        for folder_id in folders
        for name in names.get(state.folders[folder_id].folder_name, ())
        if (folder_id, name) not in used
    ]
