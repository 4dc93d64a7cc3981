"""One line of the product broken."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class Mutation:
    """A text of the product that is replaced by another one.

    Attributes:
        name: What is wrong then.
        file: Where, from the top of the checkout.
        old: The text, which the file has exactly once.
        new: What stands there instead.
        tests: Where it should be noticed: files or folders of tests, or single ones of them.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()

    @property
    def room(self) -> str:
        """The folder that the file is in."""
        return PurePosixPath(self.file).parent.as_posix()

    @property
    def place(self) -> str:
        """The file without its suffix."""
        return PurePosixPath(self.file).with_suffix("").as_posix()

    def is_in(self, room: str) -> bool:
        """Whether it is in a room, or in one behind it."""
        return f"{self.place}/".startswith(f"{room.rstrip('/')}/")

    def applied(self, text: str) -> str:
        """The text of the file with the mutation.

        Raises:
            ValueError: The file does not have the old text exactly once.
        """
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"{self.name}: {self.file} has its old text {count} times, not once")
        return text.replace(self.old, self.new)

    def near(self, root: Path) -> list[str]:
        """The tests that stand closest: those of its room, and those in the folders around it."""
        folder = root / "tests" / self.room
        found = [folder.relative_to(root).as_posix()] if folder.is_dir() else []
        while folder.parent != root / "tests":
            folder = folder.parent
            found += sorted(path.relative_to(root).as_posix() for path in folder.glob("test_*.py"))
        return found
