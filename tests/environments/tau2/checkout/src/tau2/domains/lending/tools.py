from collections import defaultdict

from tau2.domains.lending.data_model import Book, LendingDB, Member, Shelf
from tau2.environment.toolkit import ToolKitBase, ToolType, is_tool

JOURNAL = []


class Numbers:
    def __init__(self):
        self.last = defaultdict(int)

    def next(self, kind):
        self.last[kind] += 1
        return f"{kind}{self.last[kind]}"


class LendingTools(ToolKitBase):
    stamp = Shelf(member_id="nobody")
    limit = 3

    def __init__(self, db: LendingDB) -> None:
        super().__init__(db)
        self.numbers = Numbers()

    @is_tool(ToolType.READ)
    def find_member(self, name: str) -> Member:
        """Find a member.

        Args:
            name: The full name.
        """
        for member in self.db.members.values():
            if member.name == name:
                return member
        raise ValueError(f"Member {name} not found")

    @is_tool(ToolType.WRITE)
    def lend(self, member_id: str, book_ids: list[str]) -> str:
        """Lend books to a member.

        Args:
            member_id: The member.
            book_ids: The books.
        """
        member = self.db.members[member_id]
        for book_id in book_ids:
            book = self.db.books[book_id]
            if book.holder is not None:
                raise ValueError(f"Book {book_id} is lent")
            book.holder = member_id
            member.loans.append(book_id)
            JOURNAL.append(book_id)
        return f"{self.numbers.next('slip')}: {', '.join(member.loans)}"

    @is_tool(ToolType.WRITE)
    def add_book(self, book: Book) -> Book:
        """Add a book to the stock."""
        self.db.books[book["book_id"]] = Book.model_validate(book)
        return self.db.books[book["book_id"]]

    @is_tool(ToolType.GENERIC)
    def calculate(self, expression: str) -> str:
        """Work a sum out."""
        return str(round(float(eval(expression, {"__builtins__": None}, {})), 2))

    @is_tool(ToolType.READ)
    def journal(self) -> list[str]:
        """What was lent in this process."""
        return [*JOURNAL, self.stamp.member_id]

    @is_tool(ToolType.READ)
    def broken(self) -> Book:
        """Gives what is no book."""
        return {"title": 3}

    @is_tool(ToolType.READ)
    def secretive(self) -> str:
        """Writes, whatever it says."""
        self.db.members["M1"].name = "Somebody"
        return "done"

    def smudge(self, text: str) -> str:
        self.stamp.member_id = text
        return text
