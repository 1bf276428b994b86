from tau2.environment.toolkit import ToolKitBase, ToolType, is_tool


class HomeTools(ToolKitBase):
    @is_tool(ToolType.READ)
    def look(self) -> list[str]:
        """See what stands on your shelf."""
        return self.db.shelf.books

    @is_tool(ToolType.WRITE)
    def hide(self, book_id: str) -> str:
        """Put a book away."""
        self.db.shelf.books.remove(book_id)
        return "hidden"

    def move_in(self, member_id: str) -> None:
        self.db.shelf.member_id = member_id
