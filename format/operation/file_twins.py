"""Files that a table may have under another name of their cluster or bucket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.errors import ValidationError
from icecomb.format.storage.location import plain_locations, plain_texts

if TYPE_CHECKING:
    from icecomb.format.manifests.columns import ManifestColumns
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.storage.file_io import FileIO


class FileTwins:
    """Files to add, compared with those there by path, length and row count.

    Which clusters and buckets are one is not always known: a router has names of its own, and a
    bucket access points.
    """

    def __init__(self, io: FileIO, files: Mapping[str, DataFile]) -> None:
        self._io = io
        self._files: dict[str, DataFile] = {}
        plain = self._plain(pa.array(list(files), pa.string()))
        for key, file in zip(plain.to_pylist(), files.values(), strict=True):
            known = self._files.setdefault(key, file)
            self._compare(file, known.file_path, known.file_size_in_bytes, known.record_count)
        self._values = pa.array(list(self._files), pa.string())

    def check(self, columns: ManifestColumns, normal: pa.Array) -> None:
        """Refuse a file of the same path, length and row count as a live one of a manifest.

        Args:
            normal: The canonical locations of its live files.
        """
        plain = self._plain(normal)
        rows = pc.is_in(plain, value_set=self._values)
        if not pc.any(rows).as_py():
            return
        facts = (
            columns.column(name).filter(columns.live).filter(rows).to_pylist()
            for name in ("file_path", "file_size_in_bytes", "record_count")
        )
        for key, path, size, count in zip(plain.filter(rows).to_pylist(), *facts, strict=True):
            self._compare(self._files[key], path, size, count)

    def _compare(self, file: DataFile, path: str, size: int, count: int) -> None:
        one, other = plain_texts([path, file.file_path], self._io.properties)
        if (size, count) == (file.file_size_in_bytes, file.record_count) and one != other:
            raise ValidationError(
                f"The table may have file {file.file_path} already: {path} has the same path, "
                "length and row count under another name of a cluster or bucket",
                hint="Leave it out if they are one file; check_duplicate_files=False of add_files "
                "adds it if they are not.",
                path=file.file_path,
            )

    def _plain(self, locations: pa.Array) -> pa.Array:
        return plain_locations(locations, self._io.properties, any_cluster=True)
