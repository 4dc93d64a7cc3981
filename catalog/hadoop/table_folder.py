"""Deletion of a file-system table's folder, limited to the table's own files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icecomb.catalog.commit.purge import purge_files, reachable_files
from icecomb.format.errors import FileIOError, NoSuchFileError, ValidationError
from icecomb.format.operation.expiry.location_keys import Spelling
from icecomb.format.property.table_property import DATA_PATH, FOLDER_STORAGE_PATH, OBJECT_STORE_PATH
from icecomb.format.spec.metadata_file import METADATA_SUFFIXES, UNPUBLISHED, version_of
from icecomb.format.storage.location import linked_texts, plain_texts

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

_SHOWN: Final = 3


class TableFolder:
    """The files of a table's folder, listed once, before anything is deleted.

    ValidationError is raised if there are files that other tables may need, or a folder that cannot
    be deleted; the metadata is None if unreadable.
    """

    def __init__(self, io: FileIO, folder: str, name: str, metadata: TableMetadata | None) -> None:
        self._io = io
        self._folder = folder
        self._name = name
        self._files = [status.location for status in io.list(folder)]
        if metadata is not None:
            location = metadata.location.rstrip("/")
            if not Spelling(io.properties).are_same(folder, location):
                # it was registered from elsewhere: its files are those of the table stored there
                metadata = None
            elif self._is_linked(location):
                raise self._refusal(
                    f"by a link, its folder {folder} is that of the table at {location}",
                    "drop that one by its own name or location; to lose this name only, remove "
                    "the link",
                    location,
                )
        self._metadata = metadata
        self._check_tables()
        self._check_files()
        if kept := io.undeletable_folder(folder):
            raise self._refusal(
                f"{kept} has snapshots of HDFS, which keep the folder and the name",
                "delete the snapshots (hdfs dfs -deleteSnapshot) first",
                kept,
            )

    def delete(self) -> None:
        """Delete the table: rows first, the newest version last, and the folder."""
        if self._metadata is not None:
            here = frozenset(self._files)
            purge_files(
                self._io,
                self._metadata,
                (self._folder,),
                lambda batch: [one for one in batch if one not in here],
            )
        numbers = {name: version_of(name) for name in self._files}
        last = sorted((number, name) for name, number in numbers.items() if number is not None)
        older = [name for number, name in last if number < last[-1][0]]
        self._io.delete(name for name, number in numbers.items() if number is None)
        # an older version that outlived the newest would be read as the table
        self._io.delete(older)
        self._io.delete(name for _, name in last[len(older) :])
        self._delete_folders()

    def _is_linked(self, location: str) -> bool:
        """Return whether a link leads to the folder, which the table itself calls otherwise."""
        properties = self._io.properties
        folder, own = plain_texts([self._folder, location], properties)
        return folder != own and linked_texts([folder], properties) != [folder]

    def _check_tables(self) -> None:
        for location in self._files:
            if not location.endswith(METADATA_SUFFIXES):
                continue
            if location.rpartition("/")[0] != f"{self._folder}/metadata":
                raise self._refusal(
                    f"another table is in its folder: {location}",
                    "drop or move that table first",
                    location,
                )
            file = location.rpartition("/")[2]
            if version_of(file) is None and not UNPUBLISHED.fullmatch(file):
                raise self._refusal(
                    f"its folder is also that of a table of another catalog: {location}",
                    "drop it there, without purging; if no catalog has it, delete the "
                    "metadata files that are not named v<number> first",
                    location,
                )

    def _check_files(self) -> None:
        own = [f"{self._folder}/{name}/" for name in ("data", "metadata")]
        properties = self._metadata.properties if self._metadata is not None else {}
        for place in (DATA_PATH, OBJECT_STORE_PATH, FOLDER_STORAGE_PATH):
            named = place.of(properties)
            if named and named.startswith(f"{self._folder}/"):
                own.append(f"{named.rstrip('/')}/")
        others = [
            location
            for location in self._files
            if not location.startswith(tuple(own))
            and not location.rpartition("/")[2].startswith(("_", "."))
        ]
        if not others:
            return
        foreign = dict(zip(self._plain(others), others, strict=True))
        if self._metadata is not None:
            for batch in reachable_files(self._io, self._metadata):
                for plain in self._plain(batch):
                    foreign.pop(plain, None)
        if foreign:
            found = sorted(foreign.values())
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            raise self._refusal(
                f"in its folder are files that are not its own: {', '.join(found[:_SHOWN])}{more}",
                "move them elsewhere, or delete them, first",
                found[0],
            )

    def _refusal(self, found: str, way_out: str, path: str) -> ValidationError:
        return ValidationError(
            f"{self._name} cannot be dropped: {found}",
            hint=f"{way_out}; nothing was deleted.",
            table=self._name,
            path=path,
        )

    def _plain(self, locations: list[str]) -> list[str]:
        return plain_texts(locations, self._io.properties, any_cluster=True)

    def _delete_folders(self) -> None:
        for folder in self._io.folder_tree(self._folder):
            problem = (
                f"Cannot delete {folder}: it is not empty. Links are in it, or something was "
                "written to it meanwhile"
            )
            hint = "The table is gone; check the folder and delete it by hand."
            try:
                deleted = self._io.delete_folder(folder)
            except NoSuchFileError:
                continue
            except FileIOError as error:
                deleted, problem, hint = False, error.message, f"{hint} {error.hint}"
            if not deleted:
                raise FileIOError(problem, hint=hint, path=folder)
