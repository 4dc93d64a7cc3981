"""Where groups of files are rewritten: on this machine, or by a session that has more of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from icecomb.format.errors import CorruptFileError, UnsupportedError, ValidationError
from icecomb.format.maintenance.group_rewriter import RewrittenGroup
from icecomb.format.maintenance.rewrite_options import CopyMode, Strategy

if TYPE_CHECKING:
    from icecomb.format.maintenance.file_group import FileGroup
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.sort import SortOrder
    from icecomb.format.storage.file_io import FileIO


class Engine(Enum):
    """Who does an action; `AUTO` is this machine as long as that is not too large for it."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"

    @classmethod
    def parse(cls, name: str) -> Engine:
        """The engine of a name.

        Raises:
            ValidationError: If there is none.
        """
        try:
            return cls(name.strip().lower())
        except ValueError:
            raise ValidationError(
                f"There is no engine {name!r}",
                hint=f"there are {', '.join(each.value for each in cls)}",
            ) from None


def check_local(engine: str, action: str, why: str) -> None:
    """Refuse executors for an action that has no work for them.

    Args:
        engine: The name of what was asked for.
        action: What is done, as a sentence begins.
        why: What it reads and writes, as one ends.

    Raises:
        ValidationError: If there is no such engine.
        UnsupportedError: If it is Spark.
    """
    if Engine.parse(engine) is Engine.SPARK:
        raise UnsupportedError(
            f"{action} does not run on Spark's executors: {why}",
            hint="leave the engine out, or say auto or local: this machine does it",
        )


@dataclass(frozen=True, slots=True)
class GroupJob:
    """One group for another engine.

    Attributes:
        identifier: The table's name.
        io: Where its files lie.
        metadata: The state whose files these are, with the schema that new ones get.
        group: The files.
        spec: The partition spec of new files.
        order: What rows are sorted by; None where they need not be.
        sort_order_id: The table's order that this is; 0 where it is none of these.
        file_bytes: How long a new file may get.
    """

    identifier: tuple[str, ...]
    io: FileIO
    metadata: TableMetadata
    group: FileGroup
    spec: PartitionSpec
    order: SortOrder | None
    sort_order_id: int
    file_bytes: int


class GroupEngine(Protocol):
    """Rewrites groups elsewhere than in this process."""

    def rewrite(self, job: GroupJob) -> Sequence[DataFile]:
        """Write the rows of a group anew; the files are in no table yet.

        Raises:
            FileIOError: If it could not be done; what was written is removed.
        """


def is_for_session(
    engine: Engine,
    session: GroupEngine | None,
    groups: Sequence[FileGroup],
    strategy: Strategy,
    *,
    copy: CopyMode,
    limit: int,
) -> bool:
    """Whether a session rewrites the groups.

    Args:
        engine: What was asked for.
        session: The session; None where there is none.
        groups: All of the run.
        strategy: How rows are put together.
        copy: Whether row groups are copied.
        limit: How many bytes this machine rewrites; see `icecomb.maintenance.local-limit`.

    Raises:
        ValidationError: If a session is asked for, and there is none.
        UnsupportedError: If it is asked for what only this machine does.
    """
    possible = strategy is not Strategy.Z_ORDER and copy is not CopyMode.REQUIRE
    if engine is Engine.SPARK:
        if session is None:
            raise ValidationError(
                "Spark can rewrite data files only where a session calls",
                hint="CALL lake.system.rewrite_data_files(table => 'db.t', "
                "options => map('engine', 'spark'))",
            )
        if not possible:
            raise UnsupportedError(
                "Spark neither sorts by zorder(...) nor copies row groups here",
                hint="leave the engine out: the driver's machine does it",
            )
    if engine is Engine.LOCAL or session is None or not possible:
        return False
    size = sum(group.size for group in groups)
    return engine is Engine.SPARK or size > limit


def rewritten_by(session: GroupEngine, job: GroupJob) -> RewrittenGroup:
    """A group that another engine rewrote; where its rows went is not known.

    Raises:
        CorruptFileError: If it wrote more or fewer rows than it was to read.
        FileIOError: If it could not be done.
    """
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
            f"their manifests, {written} came out of them",
            hint="Find out which is right before the files are replaced: rows may be lost.",
        )
    return done
