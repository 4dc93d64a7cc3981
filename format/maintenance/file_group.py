"""Choice of the files to rewrite, and their division into groups, by Iceberg Java's rules.

A group is rewritten and committed as a whole. It has files of one partition, or, if these are of
another partition spec than the new files, files of any partitions of older specs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from icecomb.format.maintenance.rewrite_options import JobOrder, PackingOptions, RewriteOptions
from icecomb.format.manifests.manifest import DataFileContent
from icecomb.format.rows.deletes.position_delete import only_target
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.spec.partition import partition_key


class Sized(Protocol):
    """A file whose size is known."""

    @property
    def file_size_in_bytes(self) -> int:
        """The size of the file in bytes."""

    @property
    def record_count(self) -> int:
        """The number of rows in the file."""


T = TypeVar("T", bound=Sized)


@dataclass(frozen=True, slots=True)
class RewriteGroup(Generic[T]):
    """A group of files that are rewritten together; sizes are in bytes.

    Attributes:
        partition: Their partition; () if they are of other specs than the new files.
        expected_files: The number of new files.
    """

    partition: tuple[Any, ...]
    tasks: tuple[T, ...]
    size: int
    expected_files: int
    split_size: int

    @property
    def record_count(self) -> int:
        """The number of rows in the files, including deleted ones."""
        return sum(task.record_count for task in self.tasks)


FileGroup: TypeAlias = RewriteGroup[FileScanTask]


def plan_groups(
    tasks: Iterable[FileScanTask], options: RewriteOptions, output_spec_id: int
) -> list[FileGroup]:
    """Return the groups of whole data files that are worth rewriting, in the order of rewriting."""
    partitions: dict[Any, tuple[tuple[Any, ...], list[FileScanTask]]] = {}
    for task in tasks:
        if not (options.rewrite_all or _is_candidate(task, options)):
            continue
        partition = task.file.partition if task.spec.spec_id == output_spec_id else ()
        partitions.setdefault(partition_key(partition), (partition, []))[1].append(task)
    return pack_groups(partitions.values(), options, lambda found: _is_worth_it(found, options))


def pack_groups(
    partitions: Iterable[tuple[tuple[Any, ...], Sequence[T]]],
    options: PackingOptions,
    is_worth_it: Callable[[Sequence[T]], bool],
) -> list[RewriteGroup[T]]:
    """Divide the files of each partition into groups, in the order of rewriting."""
    groups = [
        _group(partition, members, options)
        for partition, found in partitions
        for members in _packed(found, options)
        if options.rewrite_all or is_worth_it(members)
    ]
    return _limited(ordered(groups, options.job_order), options)


def is_outside(file: Sized, options: PackingOptions) -> bool:
    """Return whether a file is shorter or longer than it should be."""
    return not options.min_file_bytes <= file.file_size_in_bytes <= options.max_file_bytes


def is_enough(members: Sequence[Sized], options: PackingOptions) -> bool:
    """Return whether files are numerous enough, or together large enough, to be rewritten."""
    size = sum(file.file_size_in_bytes for file in members)
    several = len(members) > 1
    return (
        (several and len(members) >= options.min_input_files)
        or (several and size > options.target_bytes)
        or size > options.max_file_bytes
    )


def _is_candidate(task: FileScanTask, options: RewriteOptions) -> bool:
    return (
        is_outside(task, options)
        or _has_too_many_deletes(task, options)
        or _has_too_high_delete_ratio(task, options)
    )


def _has_too_many_deletes(task: FileScanTask, options: RewriteOptions) -> bool:
    return len(task.delete_files) >= options.delete_file_threshold


def _has_too_high_delete_ratio(task: FileScanTask, options: RewriteOptions) -> bool:
    if not task.delete_files or not task.record_count:
        return False
    deleted = sum(
        file.record_count
        for file in task.delete_files
        if file.content is DataFileContent.POSITION_DELETES and only_target(file) is not None
    )
    return min(deleted, task.record_count) / task.record_count >= options.delete_ratio_threshold


def _packed(tasks: Sequence[T], options: PackingOptions) -> Iterator[list[T]]:
    """Yield groups of files in their order, with as many files as fit into each."""
    members: list[T] = []
    size = 0
    for task in tasks:
        full = (
            size + task.file_size_in_bytes > options.group_bytes
            or len(members) >= options.group_files
        )
        if members and full:
            yield members
            members, size = [], 0
        members.append(task)
        size += task.file_size_in_bytes
    if members:
        yield members


def _is_worth_it(members: Sequence[FileScanTask], options: RewriteOptions) -> bool:
    return (
        is_enough(members, options)
        or any(_has_too_many_deletes(task, options) for task in members)
        or any(_has_too_high_delete_ratio(task, options) for task in members)
    )


def _group(
    partition: tuple[Any, ...], members: Sequence[T], options: PackingOptions
) -> RewriteGroup[T]:
    size = sum(task.file_size_in_bytes for task in members)
    expected = _expected_files(size, options)
    split = _split(size, expected, options.longest_file_bytes)
    return RewriteGroup(partition, tuple(members), size, expected, split)


def _split(size: int, files: int, longest: int) -> int:
    # a little more than one file need not become two
    return longest if files == 1 else min(max(-(-size // files), 1), longest)


def _expected_files(size: int, options: PackingOptions) -> int:
    """Return a number of files that leaves no remainder to be rewritten again soon."""
    target = options.target_bytes
    if size < target:
        return 1
    whole, rest = divmod(size, target)
    if not rest:
        return whole
    if rest > options.min_file_bytes:
        return whole + 1
    if size / whole < min(1.1 * target, options.longest_file_bytes):
        return whole
    return whole + 1


G = TypeVar("G", bound=RewriteGroup[Any])


def ordered(groups: list[G], order: JobOrder) -> list[G]:
    """Sort groups into the order of rewriting."""
    if order is JobOrder.NONE:
        return groups
    by_files = order in {JobOrder.FILES_ASC, JobOrder.FILES_DESC}
    descending = order in {JobOrder.BYTES_DESC, JobOrder.FILES_DESC}
    return sorted(groups, key=lambda g: len(g.tasks) if by_files else g.size, reverse=descending)


def _limited(groups: list[RewriteGroup[T]], options: PackingOptions) -> list[RewriteGroup[T]]:
    """Return the first groups up to the maximum number of files; the last one may be cut."""
    if options.max_files is None:
        return groups
    kept: list[RewriteGroup[T]] = []
    left = options.max_files
    for group in groups:
        tasks = group.tasks[:left]
        if not tasks:
            break
        kept.append(group if tasks == group.tasks else _group(group.partition, tasks, options))
        left -= len(tasks)
    return kept
