"""Delete files that no longer apply to any data file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.maintenance.live_files import LiveDelete, live_data, live_deletes
from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileIdentity
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.conflict import index_key
from icecomb.format.operation.overwrite import RewriteFiles
from icecomb.format.rows.deletes.position_delete import only_target
from icecomb.format.scan.delete_index import PartitionKey
from icecomb.format.spec.change.update import Changes
from icecomb.format.spec.snapshot import MAIN_BRANCH

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


class DanglingDeletesRemoval:
    """The removal of dangling deletes, for `icecomb.catalog.commit.commit`.

    Dangling deletes are determined again in each attempt: data files that other writers add
    meanwhile may be older than the existing ones, if they replace old files.
    """

    writes_files: ClassVar[bool] = True

    def __init__(
        self,
        io: FileIO,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        self._io = io
        self._branch = branch
        self._snapshot_properties = snapshot_properties
        self._operations: list[RewriteFiles] = []
        self.removed = 0

    @property
    def starting_point(self) -> tuple[str, int] | None:
        """None, because nothing is compared with an earlier snapshot."""
        return None

    def apply(self, base: TableMetadata) -> Changes:
        for operation in self._operations:
            operation.check_not_committed(base)
        head = base.snapshot_by_name(self._branch)
        found = [] if head is None else dangling_deletes(self._io, base, head)
        self.removed = len(found)
        if not found or head is None:
            return Changes(requirements=(), updates=())
        operation = RewriteFiles(self._io, self._snapshot_properties, self._branch)
        operation.validate_from_snapshot(head.snapshot_id)
        self._operations.append(operation.rewrite_files(found, ()))
        return operation.apply(base)

    def clean_up(self, committed: TableMetadata | None) -> None:
        for operation in self._operations:
            operation.clean_up(committed)


@dataclass(slots=True)
class _Oldest:
    """The data sequence numbers of the oldest data files, by partition and of all files."""

    of: dict[PartitionKey, int] = field(default_factory=dict)
    everywhere: int | None = None

    def add(self, key: PartitionKey, number: int) -> None:
        self.of[key] = min(self.of.get(key, number), number)
        self.everywhere = number if self.everywhere is None else min(self.everywhere, number)


def dangling_deletes(io: FileIO, metadata: TableMetadata, head: Snapshot) -> list[DataFile]:
    """Return the delete files that apply to no data file of a snapshot (spec: Scan Planning)."""
    manifests = read_manifests(io, head)
    deletes = list(live_deletes(io, metadata, manifests))
    if not deletes:
        return []
    targets = pa.array({t for one in deletes if (t := _target(one.file)) is not None}, pa.string())
    oldest, there = _Oldest(), dict[str, int]()
    for data in live_data(io, metadata, manifests):
        for key, number in zip(data.keys, data.ages.tolist(), strict=True):
            oldest.add(key, number)
        named = data.chosen(pc.is_in(data.paths, value_set=targets))
        # the table may have a file several times
        for path, age in zip(named.paths.to_pylist(), named.ages.tolist(), strict=True):
            there[path] = min(there.get(path, age), age)
    # with a vector, readers ignore position delete files about its data file
    covered = {
        one.file.referenced_data_file
        for one in deletes
        if one.file.is_deletion_vector and not _is_dangling(one, oldest, there)
    } - {None}
    dangling: dict[FileIdentity, DataFile] = {}
    needed = set()
    for one in deletes:
        is_ignored = not one.file.is_deletion_vector and _target(one.file) in covered
        if is_ignored or _is_dangling(one, oldest, there):
            dangling[one.file.identity] = one.file
        else:
            needed.add(one.file.identity)
    # a file that the table has several times can only be removed as a whole
    return [file for identity, file in dangling.items() if identity not in needed]


def _is_dangling(delete: LiveDelete, oldest: _Oldest, there: Mapping[str, int]) -> bool:
    file, number = delete.file, delete.number
    if file.content is DataFileContent.EQUALITY_DELETES:
        first = oldest.everywhere if delete.is_global else oldest.of.get(index_key(file))
        return first is None or number <= first
    target = _target(file)
    first = oldest.of.get(index_key(file)) if target is None else there.get(target)
    return first is None or number < first


def _target(file: DataFile) -> str | None:
    """Return the data file to which a position delete file applies, if it is only one."""
    return None if file.content is DataFileContent.EQUALITY_DELETES else only_target(file)
