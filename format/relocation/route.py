"""Where the files of a relocated table are, and where they go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from icecomb.format.errors import NoSuchFileError
    from icecomb.format.relocation.location_change import LocationChange


class Route(Protocol):
    """Where the files of a table are, and where they go."""

    @property
    def change(self) -> LocationChange:
        """The prefix that is replaced in locations."""

    def found(self, location: str) -> str:
        """Return where the file of a location in the metadata is now."""

    def kept(self, location: str, what: str) -> str:
        """Return the new location of a file that stays as it is."""

    def rewritten(self, location: str, what: str) -> str:
        """Return the new location of a file that is rewritten; raises as `kept`."""

    def put(self, location: str, content: bytes) -> str:
        """Create the new file in several threads; return where it is to be copied from."""

    def missing(self, location: str, what: str, error: NoSuchFileError) -> None:
        """Note that a file is missing, or raise the error."""


@dataclass(frozen=True, slots=True)
class MovedFile:
    """A file of the table at its new location.

    Attributes:
        source: Where it is to be copied from: the file itself, or a rewritten one.
        size: Its length in bytes as its manifest states it; None if none does.
    """

    what: str
    source: str
    target: str
    size: int | None = None
    is_rewritten: bool = False


@dataclass(slots=True)
class Relocated:
    """The files that a relocation found or wrote.

    Attributes:
        files: All files to be copied, those that name others after these; the metadata file
            last.
    """

    files: list[MovedFile] = field(default_factory=list)
    manifests: int = 0
    deletes: int = 0
