"""The folders of a table's partitions, any number of them, and the state of each."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icecomb.catalog.migrate.source.source_files import (
    PartitionFolder,
    PartitionListing,
    plain_folders,
)
from icecomb.catalog.migrate.source.spool import ROWS, RowWriter
from icecomb.format.spec import single_value
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import PrimitiveType
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import FileStatus

DIGEST: Final = 16
"""Size of a digest in bytes: equal digests mean equal texts."""
_LENGTH: Final = struct.Struct("<i")
_ROWS: Final = pa.schema(
    [
        ("name", pa.string()),
        ("location", pa.string()),
        ("values", pa.binary()),
        ("readable", pa.bool_()),
        ("positional", pa.bool_()),
    ]
)


class PartitionBytes:
    """Encoding of partition tuples, of a spec of identities, as bytes."""

    def __init__(self, spec: PartitionSpec, schema: Schema) -> None:
        kinds = (field.field_type for field in spec.partition_type(schema).fields)
        self._types = [kind for kind in kinds if isinstance(kind, PrimitiveType)]

    def pack(self, values: tuple[Any, ...]) -> bytes:
        """Encode a tuple; one without values, because they are invalid, becomes empty."""
        parts = []
        for kind, value in zip(self._types, values, strict=False):
            data = None if value is None else single_value.to_bytes(kind, value)
            parts.append(_LENGTH.pack(-1 if data is None else len(data)) + (data or b""))
        return b"".join(parts)

    def unpack(self, packed: bytes) -> tuple[Any, ...]:
        """Decode a tuple."""
        values: list[Any] = []
        at = 0
        while at < len(packed):
            (length,) = _LENGTH.unpack_from(packed, at)
            at += _LENGTH.size
            if length < 0:
                values.append(None)
                continue
            values.append(
                single_value.from_bytes(self._types[len(values)], packed[at : at + length])
            )
            at += length
        return tuple(values)


class PartitionFolders(Sequence[PartitionFolder]):
    """The folders of a table in their order, on the local disk, with the last page cached."""

    def __init__(self, packing: PartitionBytes) -> None:
        self._packing = packing
        self._writer = RowWriter(_ROWS)
        self._digests = bytearray()
        self._page: tuple[int, list[PartitionFolder]] = (-1, [])

    def extend(self, io: FileIO, folders: Sequence[PartitionFolder]) -> list[str]:
        """Add folders, and return their normalized locations."""
        locations = plain_folders(io.properties, (folder.location for folder in folders))
        for folder, location in zip(folders, locations, strict=True):
            packed = self._packing.pack(folder.values)
            row = (folder.name, folder.location, packed, folder.readable, folder.positional)
            self._writer.add(row)
            self._digests += digest(location)
        return locations

    def close(self) -> None:
        """Finish after all folders were added."""
        self._writer.flush()

    def __len__(self) -> int:
        """Return the number of folders."""
        return len(self._digests) // DIGEST

    def __getitem__(self, number: Any) -> Any:
        """Return a folder by its number; cheap if numbers ascend."""
        page = number // ROWS
        if self._page[0] != page:
            self._page = (page, self._read(page))
        return self._page[1][number % ROWS]

    def __iter__(self) -> Iterator[PartitionFolder]:
        """Yield all folders."""
        for number in range(self._writer.spool.batches):
            yield from self._read(number)

    def locations(self) -> DigestSet:
        """Return the set of normalized locations."""
        return DigestSet(bytes(self._digests))

    def sharing(self, io: FileIO) -> Iterator[tuple[PartitionFolder, PartitionFolder]]:
        """Yield the pairs of partitions that share a folder, however it is spelled or linked.

        Hive shows the rows of such a folder in both partitions; an Iceberg file is in only one.
        """
        ordered = np.sort(np.frombuffer(bytes(self._digests), f"S{DIGEST}"))
        twice = {bytes(one) for one in ordered[1:][ordered[1:] == ordered[:-1]]}
        if not twice:
            return
        first: dict[str, PartitionFolder] = {}
        for number, folder in enumerate(self):
            one = self._digests[number * DIGEST : (number + 1) * DIGEST].rstrip(b"\0")
            if bytes(one) in twice:
                (location,) = plain_folders(io.properties, [folder.location])
                known = first.setdefault(location, folder)
                if known is not folder:
                    yield known, folder

    def _read(self, page: int) -> list[PartitionFolder]:
        names, locations, packed, readable, positional = (
            column.to_pylist() for column in self._writer.spool.batch(page).columns
        )
        values = map(self._packing.unpack, packed)
        return list(map(PartitionFolder, names, locations, values, readable, positional))


class DigestSet:
    """A set of texts, stored as their concatenated digests."""

    def __init__(self, digests: bytes) -> None:
        self._ordered = np.sort(np.frombuffer(digests, f"S{DIGEST}"))

    def __contains__(self, text: str) -> bool:
        """Return whether a text is in the set."""
        return self.among([digest(text)])[0]

    def among(self, digests: Sequence[bytes]) -> Sequence[bool]:
        """Return for each digest whether it is in the set."""
        if not len(self._ordered):
            return [False] * len(digests)
        asked = np.array(digests, f"S{DIGEST}")
        at = np.searchsorted(self._ordered, asked)
        found: list[bool] = (
            self._ordered[np.minimum(at, len(self._ordered) - 1)] == asked
        ).tolist()
        return found


class FolderStates:
    """The state of each folder, to find out later whether it is unchanged.

    Args:
        own: A folder whose files do not count: the migration's own.
    """

    def __init__(self, folders: Sequence[PartitionFolder], own: str) -> None:
        self.folders = folders
        self._own = own
        self._digests = bytearray()

    def add(self, found: PartitionListing) -> None:
        """Record the state of the next folder."""
        self._digests += self._digest(found)

    def skip(self) -> None:
        """Record no state of the next folder, so that no later state equals it."""
        self._digests += bytes(DIGEST)

    def match(self, listed: Iterable[PartitionListing]) -> bool:
        """Return whether all folders, `listed` in the same order, are unchanged."""
        now = 0
        for found in listed:
            if self._digest(found) != self._digests[now : now + DIGEST]:
                return False
            now += DIGEST
        return now == len(self._digests)

    def _digest(self, found: PartitionListing) -> bytes:
        nested = [one for one in found.nested if not one.location.startswith(self._own)]
        said = (found.folder.location, found.folder.values, found.exists, found.empty)
        return digest(repr((*said, _stated(found.files), _stated(nested))))


def _stated(files: Iterable[FileStatus]) -> list[tuple[object, ...]]:
    # Files of one size and time may be exchanged, and copies are given old times.
    return [(one.location, one.size, one.mtime_ms, one.file_id) for one in files]


def digest(text: str) -> bytes:
    """Return the digest of a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST).digest()
