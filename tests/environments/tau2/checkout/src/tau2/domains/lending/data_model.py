# ruff: noqa: UP006, UP035, UP045 - written as the published domains are
from typing import Dict, List, Literal, Optional

from pydantic import BaseModel

from tau2.environment.db import DB


class Book(BaseModel):
    book_id: str
    title: str
    holder: Optional[str] = None


class Member(BaseModel):
    member_id: str
    name: str
    loans: List[str] = []


class LendingDB(DB):
    books: Dict[str, Book]
    members: Dict[str, Member]
    desk: Literal["open", "closed"] = "open"


class Shelf(BaseModel):
    member_id: Optional[str] = None
    books: List[str] = []


class HomeDB(DB):
    shelf: Shelf
