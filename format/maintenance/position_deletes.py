"""Rewriting of position delete files: fewer, of a better size, for existing data files only.

A position delete applies to its data file unless this is newer (spec: Scan Planning). The new file
is as new as the newest of those that it replaces, so it may be newer than some deletes in it were.
It still deletes no additional row: from each old file, only applicable positions are taken over,
which are those in data files not newer than that old file, and hence not newer than the new one.
Anything else that an old file names (a data file that is gone, or one that was added again under
the same name) is left out. The commit checks again what held for the snapshot that was read: no
named file may have been added again, or have another age. A data file that is added later, under a
name that was then unused, is newer than all existing delete files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final
from zlib import crc32

import pyarrow as pa

from icecomb.format.arrow.batch_stream import stream
from icecomb.format.cancellation import check_wanted
from icecomb.format.maintenance.file_group import is_enough, is_outside, pack_groups
from icecomb.format.maintenance.live_files import DataFileAges, LiveDelete, live_deletes
from icecomb.format.maintenance.rewritten_deletes import (
    DeleteGroup,
    NamedFile,
    RewrittenDeletes,
)
from icecomb.format.manifests.manifest import DataFileContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.conflict import index_key
from icecomb.format.rows.deletes.position_delete import (
    Positions,
    distinct,
    only_target,
    positions_by_path,
)
from icecomb.format.rows.deletes.position_delete_writer import PositionDeleteWriter

if TYPE_CHECKING:
    from collections.abc import Collection

    from icecomb.format.maintenance.rewrite_options import PackingOptions
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.scan.delete_index import PartitionKey
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO

AT_ONCE: Final = 1 << 24
"""The number of positions to hold in memory, 8 bytes each; for more, files are read again."""
MOST_SHARES: Final = 256
"""The maximum number of times that files are read again: their stated rows may be wrong."""


class PositionDeletePlan:
    """A plan of the position delete files that are worth rewriting.

    Attributes:
        groups: Groups of one partition each, in the order of rewriting.
    """

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        head: Snapshot,
        chosen: Collection[str],
        options: PackingOptions,
    ) -> None:
        manifests = read_manifests(io, head)
        found: dict[PartitionKey, list[LiveDelete]] = {}
        for delete in live_deletes(io, metadata, manifests):
            if (
                delete.file.content is DataFileContent.POSITION_DELETES
                and delete.file_path in chosen
                and (options.rewrite_all or is_outside(delete, options))
            ):
                found.setdefault(index_key(delete.file), []).append(delete)
        targets = {only_target(one.file) for members in found.values() for one in members}
        self.ages = DataFileAges(
            io,
            metadata,
            manifests if found else (),
            found,
            pa.array(targets - {None}, pa.string()),
            wide=None in targets,
        )
        # a delete file that names only one data file applies to it in any partition: merged with
        # others it would not
        partitions = [
            (members[0].file.partition, [one for one in members if not self._strays(one, key)])
            for key, members in found.items()
        ]
        self.groups: list[DeleteGroup] = pack_groups(
            partitions, options, lambda members: is_enough(members, options)
        )

    def _strays(self, delete: LiveDelete, key: PartitionKey) -> bool:
        target = only_target(delete.file)
        return target is not None and self.ages.is_elsewhere(target, key)


class PositionDeleteRewriter:
    """A rewriter of groups of position delete files.

    The column `row`, in which some writers also store deleted rows, is not taken over.
    """

    def __init__(
        self, io: FileIO, metadata: TableMetadata, operation_id: str, ages: DataFileAges
    ) -> None:
        self._io = io.to_copy()
        self._metadata = metadata
        self._operation_id = operation_id
        self._ages = ages

    def rewrite(self, number: int, group: DeleteGroup, workers: int) -> RewrittenDeletes:
        """Write the positions of a group; if anything fails, the written files are removed."""
        shares = min(max(-(-group.record_count // AT_ONCE), 1), MOST_SHARES)
        known: dict[str, int] = {}
        files: list[DataFile] = []
        first = group.tasks[0].file
        try:
            for share in range(shares):
                writer = PositionDeleteWriter(
                    self._io,
                    self._metadata,
                    f"{self._operation_id}-{number}-{share}",
                    target=group.split_size,
                )
                try:
                    for path, positions in self._applying(group, (share, shares), workers, known):
                        check_wanted()
                        target = NamedFile(path, first.spec_id, first.partition)
                        writer.add(target, positions)
                    files += writer.close()
                except BaseException:
                    writer.abort()
                    raise
        except BaseException:
            self._io.discard([file.file_path for file in files])
            raise
        newest = max(delete.number for delete in group.tasks)
        return RewrittenDeletes(group, tuple(files), newest, known)

    def _applying(
        self,
        group: DeleteGroup,
        share: tuple[int, int],
        workers: int,
        known: dict[str, int],
    ) -> Iterator[tuple[str, Positions]]:
        """Yield the positions that apply to one share of the data files, ordered by path.

        Args:
            share: The number of the share, and the number of shares.
            known: A mapping to add the age of each named data file to.
        """
        producers = (partial(self._read, delete, share) for delete in group.tasks)
        read = list(stream(producers, workers, depth=0))
        names = sorted({path for _, by_path in read for path in by_path}, key=str.encode)
        ages = self._ages.of(index_key(group.tasks[0].file), pa.array(names, pa.string()))
        age_of = dict(zip(names, ages.tolist(), strict=True))
        known.update(age_of)
        applying: dict[str, list[Positions]] = {}
        for delete, by_path in read:
            for path, positions in by_path.items():
                if 0 <= age_of[path] <= delete.number:
                    applying.setdefault(path, []).append(positions)
        del read
        for path in names:
            if path in applying:
                yield path, distinct(applying.pop(path))

    def _read(
        self, delete: LiveDelete, share: tuple[int, int]
    ) -> Iterable[tuple[LiveDelete, Mapping[str, Positions]]]:
        target = only_target(delete.file)
        if target is not None and not _is_of(target, share):
            return
        found = positions_by_path(self._io, delete.file)
        yield delete, {path: own for path, own in found.items() if _is_of(path, share)}


def _is_of(path: str, share: tuple[int, int]) -> bool:
    at, count = share
    return count == 1 or crc32(path.encode()) % count == at
