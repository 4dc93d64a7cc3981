"""The position delete files of a table that is relocated, each rewritten once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import NoSuchFileError
from icecomb.format.relocation.delete_paths import ChangedDeletes, changed_deletes, described
from icecomb.format.relocation.route import MovedFile

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.relocation.route import Route
    from icecomb.format.storage.file_io import FileIO

_WHAT: Final = "position delete file"
_SMALL_BYTES: Final = 4 << 20
_SMALL_ROWS: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A file of positions, or of deletion vectors, to be rewritten.

    Attributes:
        location: The file, as its manifest spells it.
        is_wanted: Whether to create the new one; else only its description is needed.
    """

    location: str
    file: DataFile
    is_wanted: bool

    @property
    def is_large(self) -> bool:
        """Whether several at a time might need too much memory."""
        file = self.file
        return file.file_size_in_bytes > _SMALL_BYTES or file.record_count > _SMALL_ROWS


class DeleteFiles:
    """What became of delete files.

    Args:
        moved: Function for the new path of a data file, which a delete file names.
    """

    def __init__(self, io: FileIO, route: Route, moved: Callable[[str, str], str]) -> None:
        self.properties: Mapping[str, str] = {}
        self._io = io
        self._route = route
        self._moved = moved
        self._requested: set[str] = set()
        self._wanted: set[str] = set()
        self._done: dict[str, tuple[ChangedDeletes, MovedFile | None]] = {}

    def request(self, record: Mapping[str, Any], *, is_new: bool) -> DeleteFile | None:
        """Return the file to rewrite for a live entry; None if that was returned before.

        Args:
            is_new: Whether the new file is to be created.
        """
        location = record["file_path"]
        target = self._route.rewritten(location, "delete file")
        is_wanted = is_new and target not in self._wanted
        if location in self._requested and not is_wanted:
            return None
        self._requested.add(location)
        if is_wanted:
            self._wanted.add(target)
        return DeleteFile(location, described(record, self._route.found(location)), is_wanted)

    def rewrite(self, one: DeleteFile) -> tuple[ChangedDeletes, MovedFile | None] | NoSuchFileError:
        """Rewrite a file, in any thread, and create it if wanted; return what `note` takes."""
        moved = partial(self._moved, one.location)
        try:
            content, changed = changed_deletes(self._io, one.file, moved, self.properties)
        except NoSuchFileError as error:
            return error
        if not one.is_wanted:
            return changed, None
        target = self._route.rewritten(one.location, "delete file")
        source = self._route.put(one.location, content)
        return changed, MovedFile(_WHAT, source, target, len(content), is_rewritten=True)

    def note(
        self,
        one: DeleteFile,
        result: tuple[ChangedDeletes, MovedFile | None] | NoSuchFileError,
    ) -> None:
        """Keep the result of a file, for `result`; raise the error if it may not be missing."""
        if isinstance(result, NoSuchFileError):
            self._route.missing(one.location, _WHAT, result)
        else:
            self._done[one.location] = result

    def result(self, location: str) -> tuple[ChangedDeletes | None, MovedFile | None]:
        """Return how a rewritten file is described, and the new file if it was created."""
        return self._done.get(location, (None, None))
