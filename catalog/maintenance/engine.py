"""The engine that rewrites groups of files: this machine, or a session with more machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from icecomb.format.errors import CorruptFileError, UnsupportedError, ValidationError
from icecomb.format.maintenance.file_rewriter import RewrittenGroup
from icecomb.format.maintenance.rewrite_options import CopyMode, Strategy

if TYPE_CHECKING:
    from icecomb.format.maintenance.file_group import FileGroup
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.sort import SortOrder
    from icecomb.format.storage.file_io import FileIO


class Engine(Enum):
    """The engine of an action; `AUTO` is this machine up to a limit."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"

    @classmethod
    def parse(cls, name: str) -> Engine:
        """Return the engine of a name."""
        try:
            return cls(name.strip().lower())
        except ValueError:
            raise ValidationError(
                f"There is no engine {name!r}",
                hint=f"There are {', '.join(each.value for each in cls)}.",
            ) from None


def check_local(engine: str, action: str, why: str) -> None:
    """Refuse executors for an action that has no work for them.

    Args:
        action: The action, as the start of a sentence.
        why: The reason, as the end of a sentence.
    """
    if Engine.parse(engine) is Engine.SPARK:
        raise UnsupportedError(
            f"{action} does not run on Spark's executors: {why}",
            hint="Leave the engine out, or set it to auto or local: this machine does it.",
        )


@dataclass(frozen=True, slots=True)
class RewriteJob:
    """A group for another engine to rewrite.

    Attributes:
        metadata: The metadata of these files, with the schema that new ones get.
        spec: The partition spec of new files.
        order: The order of rows; None if they need not be sorted.
        sort_order_id: The id of that order in the table; 0 if it is not one of the table's.
        file_bytes: Maximum bytes of a new file.
    """

    identifier: tuple[str, ...]
    io: FileIO
    metadata: TableMetadata
    group: FileGroup
    spec: PartitionSpec
    order: SortOrder | None
    sort_order_id: int
    file_bytes: int


class RewriteEngine(Protocol):
    """A rewriter of groups outside of this process."""

    def rewrite(self, job: RewriteJob) -> Sequence[DataFile]:
        """Rewrite the rows of a group; the new files are in no table yet."""


def is_for_session(
    engine: Engine,
    session: RewriteEngine | None,
    groups: Sequence[FileGroup],
    strategy: Strategy,
    *,
    copy: CopyMode,
    limit: int,
) -> bool:
    """Return whether a session (None without one) rewrites all the groups of a run.

    Args:
        limit: Bytes that this machine rewrites at most; see `icecomb.maintenance.local-limit`.
    """
    possible = strategy is not Strategy.Z_ORDER and copy is not CopyMode.REQUIRE
    if engine is Engine.SPARK:
        if session is None:
            raise ValidationError(
                "Spark can rewrite data files only where a session calls",
                hint="CALL lake.system.rewrite_data_files(table => 'db.t', "
                "options => map('engine', 'spark')).",
            )
        if not possible:
            raise UnsupportedError(
                "Spark neither sorts by zorder(...) nor copies row groups here",
                hint="Leave the engine out: the driver's machine does it.",
            )
    if engine is Engine.LOCAL or session is None or not possible:
        return False
    size = sum(group.size for group in groups)
    return engine is Engine.SPARK or size > limit


def rewritten_by(session: RewriteEngine, job: RewriteJob) -> RewrittenGroup:
    """Rewrite a group by another engine, which does not tell where each row went."""
    files = tuple(session.rewrite(job))
    done = RewrittenGroup(job.group, files, None)
    written = sum(file.record_count for file in files)
    expected = job.group.record_count
    if any(task.record_count < 0 for task in job.group.tasks):  # a writer did not know it
        return done
    has_deletes = any(task.delete_files for task in job.group.tasks)
    if written > expected or (written < expected and not has_deletes):
        done.discard(job.io)
        raise CorruptFileError(
            f"{'.'.join(job.identifier)}: {len(job.group.tasks)} files have {expected} rows by "
            f"their manifests, {written} were written from them",
            hint="Find out which is right before the files are replaced: rows may be lost.",
        )
    return done
