"""Conversion of position delete files, which version 2 left, to deletion vectors.

A vector stands for all position deletes of its data file, so every data file to which one of the
files applies gets one, with all its deleted rows, whatever other files name them. Data files that
have a vector need no other: readers already ignore position delete files there. The commit checks
again that no named file was added again or removed, and that nobody deleted more rows of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from icecomb.format.arrow.batch_stream import stream
from icecomb.format.cancellation import check_wanted
from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.maintenance.equality_conversion import ReachedFile, reached_files
from icecomb.format.maintenance.file_group import RewriteGroup, ordered
from icecomb.format.maintenance.live_files import LiveDelete, live_deletes, repeated_files
from icecomb.format.maintenance.rewritten_deletes import DeleteGroup, RewrittenDeletes
from icecomb.format.manifests.manifest import DataFileContent
from icecomb.format.operation.conflict import index_key
from icecomb.format.rows.deletes.deletion_vector_writer import DeletionVectorWriter, OlderDeletes
from icecomb.format.scan.scan_planner import ScanPlanner

if TYPE_CHECKING:
    from collections.abc import Collection

    from icecomb.format.maintenance.rewrite_options import PackingOptions
    from icecomb.format.rows.deletes.position_delete import Positions
    from icecomb.format.scan.delete_index import PartitionKey
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


@dataclass(frozen=True, slots=True)
class VectorGroup(RewriteGroup[LiveDelete]):
    """A group of position delete files whose data files get vectors.

    Attributes:
        data: All data files without a vector to which one of them applies.
    """

    data: tuple[ReachedFile, ...]


def plan_vectors(
    io: FileIO,
    metadata: TableMetadata,
    head: Snapshot,
    chosen: Collection[str],
    options: PackingOptions,
) -> list[DeleteGroup]:
    """Return groups of the chosen position delete files to convert, of one partition each.

    Files that name a data file which the table has several times are left out: vectors cannot be
    about one of its entries.
    """
    planner = ScanPlanner(metadata, io, metadata.schema(), AlwaysTrue())
    manifests, index = planner.live(head)
    deletes = {
        delete.file_path: delete
        for delete in live_deletes(io, metadata, manifests)
        if delete.file.content is DataFileContent.POSITION_DELETES
        and not delete.file.is_deletion_vector
        and delete.file_path in chosen
    }
    reached = list(reached_files(planner, manifests if deletes else (), index, deletes))
    # also in entries that they do not reach, because these are newer
    paths = pa.array({one.task.file_path for one in reached}, pa.string())
    repeated = repeated_files(io, metadata, manifests, paths)
    for one in reached:
        if one.task.file_path in repeated:
            for file in one.deletes:
                deletes.pop(file.file_path, None)
    key_of = {path: index_key(delete.file) for path, delete in deletes.items()}
    data: dict[PartitionKey, list[ReachedFile]] = {}
    for one in reached:
        if any(file.file_path in deletes for file in one.deletes):
            key = index_key(one.task.file)
            data.setdefault(key, []).append(one)
            # a file that names only one data file applies to it in any partition
            key_of.update((f.file_path, key) for f in one.deletes if f.file_path in deletes)
    members: dict[PartitionKey, list[LiveDelete]] = {}
    for path, key in key_of.items():
        members.setdefault(key, []).append(deletes[path])
    groups: list[DeleteGroup] = [
        VectorGroup(
            found[0].file.partition,
            tuple(found),
            sum(delete.file_size_in_bytes for delete in found),
            1,
            options.target_bytes,
            tuple(data.get(key, ())),
        )
        for key, found in members.items()
    ]
    return ordered(groups, options.job_order)


class VectorConverter:
    """A converter of groups of position delete files to deletion vectors."""

    def __init__(self, io: FileIO, metadata: TableMetadata, operation_id: str) -> None:
        self._io = io = io.to_copy()
        self._metadata = metadata
        self._operation_id = operation_id
        self._older = OlderDeletes(io)

    def rewrite(self, number: int, group: DeleteGroup, workers: int) -> RewrittenDeletes:
        """Write the vectors of a group; if anything fails, the written file is removed."""
        data = group.data if isinstance(group, VectorGroup) else ()
        writer = DeletionVectorWriter(self._io, self._metadata, f"{self._operation_id}-{number}")
        try:
            for one, positions in stream((partial(self._deleted, one) for one in data), workers):
                check_wanted()
                writer.add(one.task.file, positions)
            files = writer.close()
        except BaseException:
            writer.abort()
            raise
        ages = {one.task.file_path: one.age for one in data}
        return RewrittenDeletes(group, tuple(files), None, ages)

    def _deleted(self, one: ReachedFile) -> Iterator[tuple[ReachedFile, Positions]]:
        positions, _ = self._older.joined(one.task)
        if len(positions):
            yield one, positions
