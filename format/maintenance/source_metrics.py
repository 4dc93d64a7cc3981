"""Column metrics of source files, as manifests state them.

Planning leaves them out, because they are not needed for most files. Manifests are read for them
once per run, when the first group is copied.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.cancellation import check_wanted
from icecomb.format.expressions.manifest_metrics import METRICS
from icecomb.format.manifests.columns import mappings
from icecomb.format.manifests.manifest import DataFile, ManifestContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_each_columns

if TYPE_CHECKING:
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


class SourceMetrics:
    """The metrics of some files of a snapshot."""

    def __init__(self, io: FileIO, snapshot: Snapshot, paths: Collection[str]) -> None:
        self._io = io
        self._snapshot = snapshot
        self._paths = paths
        self._lock = Lock()
        self._found: list[dict[str, pa.Array]] = []
        self._places: Mapping[str, tuple[int, int]] | None = None

    def of(self, file: DataFile) -> DataFile:
        """Return a file with its metrics, or unchanged if it is not one of `paths`."""
        with self._lock:
            if self._places is None:
                self._places = self._read()
        place = self._places.get(file.file_path)
        if place is None:
            return file
        columns, row = self._found[place[0]], place[1]
        values: dict[str, Any] = {
            name: mappings(columns[name].slice(row, 1))[0] for name in METRICS
        }
        return replace(file, **values)

    def _read(self) -> Mapping[str, tuple[int, int]]:
        places: dict[str, tuple[int, int]] = {}
        wanted = pa.array(self._paths, pa.string())
        manifests = [
            manifest
            for manifest in read_manifests(self._io, self._snapshot)
            if manifest.content is ManifestContent.DATA and manifest.has_live_files()
        ]
        for columns in read_each_columns(self._io, manifests, lambda _: None, METRICS):
            check_wanted()
            paths = columns.column("file_path")
            rows = pc.indices_nonzero(pc.and_(columns.live, pc.is_in(paths, wanted)))
            if not len(rows):
                continue
            for row, path in enumerate(paths.take(rows).to_pylist()):
                places[path] = len(self._found), row
            self._found.append({name: columns.column(name).take(rows) for name in METRICS})
        return places
