"""Appending rows, or data files that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icecomb.format.argument import checked_int
from icecomb.format.arrow.batch_stream import pooled, thread_pool
from icecomb.format.errors import ValidationError
from icecomb.format.operation.append import MergeAppend
from icecomb.format.operation.file_addition import FileAddition, known_paths
from icecomb.format.row_changes.write_target import WriteTarget, WrittenChange
from icecomb.format.rows.files.added_file import AddedFiles, GivenPartition
from icecomb.format.rows.write.data_writer import write_data
from icecomb.format.storage.location import linked_texts

if TYPE_CHECKING:
    from icecomb.format.arrow.batch_stream import GivenRows
    from icecomb.format.manifests.manifest import DataFile


def append_rows(target: WriteTarget, data: GivenRows) -> WrittenChange:
    """Write rows to data files, and append these; a reader is consumed batch by batch."""
    append = MergeAppend(target.io, target.snapshot_properties, target.branch)
    return _added(target, append, write_data(target.io, target.metadata, data))


def append_files(
    target: WriteTarget, files: Sequence[DataFile], *, stage_only: bool = False
) -> WrittenChange:
    """Append data files that were written for this change.

    Args:
        files: The files, with the table's field ids and one of its partition specs.
        stage_only: Whether to leave the branch as it is.
    """
    append = MergeAppend(
        target.io, target.snapshot_properties, target.branch, stage_only=stage_only
    )
    return _added(target, append, files)


def _added(target: WriteTarget, append: MergeAppend, files: Sequence[DataFile]) -> WrittenChange:
    for file in files:
        append.append_data_file(file)
    return WrittenChange(append, target.written_with, files)


_ANSWERS = ("error", "skip")


def add_files(
    target: WriteTarget,
    paths: Sequence[str],
    *,
    check_duplicate_files: bool = True,
    on_duplicate: str = "error",
    partition: GivenPartition | None = None,
    parallelism: int = 16,
) -> WrittenChange | None:
    """Add Parquet, ORC or Avro files at their current locations; None if no file is given.

    Args:
        paths: The files; see `AddedFiles.describe` for the requirements on them.
        on_duplicate: The treatment of files that the branch already has, and of paths given
            twice: `error` or `skip`.
        partition: Values of partition fields; see `AddedFiles`.
    """
    if on_duplicate not in _ANSWERS:
        raise ValidationError(
            f"on_duplicate cannot be {on_duplicate!r}", hint=f"Use one of: {', '.join(_ANSWERS)}."
        )
    # a string is a sequence of strings, too: one file is meant
    paths = [paths] if isinstance(paths, str) else paths
    skip = on_duplicate == "skip"
    by_location: dict[str, str] = {}
    plain = linked_texts(paths, target.io.properties)
    for location, path in zip(plain, paths, strict=True):
        if location in by_location and not skip:
            raise ValidationError(
                f"File {path} is given twice",
                hint='Name each file once, or give on_duplicate="skip".',
                path=path,
            )
        by_location.setdefault(location, path)
    unique = list(by_location.values())
    snapshot = target.start()
    there: set[str] = set()
    if skip and check_duplicate_files and snapshot is not None:
        there = known_paths(target.io, target.metadata, snapshot, unique, set())
        unique = [path for path in unique if path not in there]
    checked_int("parallelism", parallelism, 1)
    describer = AddedFiles(target.io, target.metadata, partition, take_unread=True)
    with thread_pool(parallelism) as pool:
        files = list(pooled(pool, describer.describe, unique))
    if not files and not there:
        return None
    return WrittenChange(
        FileAddition(
            target.io,
            target.snapshot_properties,
            target.branch,
            files,
            schema=target.metadata.schema(),
            name_mapping=describer.name_mapping,
            unread=describer.unread,
            check=check_duplicate_files,
            skip=skip,
            left_out=there,
            seen=snapshot,
        ),
        target.written_with,
    )
