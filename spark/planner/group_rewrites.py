"""Groups of files that a Spark session rewrites for a procedure.

A procedure asks its session to read a group and to write its rows. Both name the group by an
option; the files that the write leaves go to the procedure, which commits them.
"""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from icecomb.format.cancellation import check_wanted, wait_for
from icecomb.format.errors import CommitFailedError, FileIOError
from icecomb.format.rows.scan_task import FileScanTask
from icecomb.spark.planner.layout import Layout, group_layout
from icecomb.spark.planner.procedures.call import quoted
from icecomb.spark.planner.protocol import SessionWork

if TYPE_CHECKING:
    from icecomb.catalog.maintenance.engine import GroupJob
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.spark.planner.options import Options
    from icecomb.spark.planner.procedures.conversation import Conversation
    from icecomb.spark.planner.states import TableState

GROUP: Final = "icecomb-rewrite-group"
"""The option of a read and of a write that names a group."""

_LOOK_S: Final = 60.0


class GroupRewrite:
    """A group while a session rewrites it.

    Args:
        job: What is rewritten.
    """

    def __init__(self, job: GroupJob) -> None:
        self.job = job
        self.id = str(uuid.uuid4())
        self._ended = threading.Event()
        self._files: Sequence[DataFile] | None = None
        self._problem: str | None = None

    def work(self, catalog: str) -> SessionWork:
        """What the session is asked to do.

        Args:
            catalog: What the session calls the table's catalog.
        """
        job, here = self.job, {GROUP: self.id}
        reading = {"split-size": str(job.group.split_size), "file-open-cost": "1"}
        writing = {"target-file-size-bytes": str(job.file_bytes)}
        return SessionWork(
            self.id, quoted(catalog, *job.identifier), here | reading, here | writing
        )

    def check(self, state: TableState) -> None:
        """Refuse a session that has found another table than the group's, or other columns.

        Raises:
            CommitFailedError: It has.
        """
        ours, found = self.job.metadata, state.metadata
        if (ours.table_uuid, ours.current_schema_id) != (found.table_uuid, found.current_schema_id):
            raise CommitFailedError(
                f"Table {state.name} got other columns while its files were being rewritten",
                hint="call rewrite_data_files again",
                table=state.name,
            )

    def tasks(self) -> deque[FileScanTask]:
        """The files, in whole: a filter that chose one is not what its rows are chosen by."""
        group = self.job.group
        return deque(FileScanTask(t.file, t.delete_files, spec=t.spec) for t in group.tasks)

    def layout(self, options: Options) -> Layout:
        """How the rows go to the tasks that write them."""
        job = self.job
        mixed = job.spec.is_partitioned() and not job.group.partition
        return group_layout(
            job.metadata,
            job.spec,
            job.order,
            file_bytes=job.group.split_size,
            mixed=mixed,
            options=options,
        )

    def take(self, files: Sequence[DataFile]) -> None:
        """Keep what a write left, for the procedure."""
        self._files = files

    def end(self, problem: str | None) -> None:
        """Say that the session is done, or why it gave up."""
        self._problem = problem
        self._ended.set()

    def result(self) -> Sequence[DataFile]:
        """Wait for the files.

        Raises:
            FileIOError: The session could not write them.
            OperationCancelledError: Nobody waits for the procedure any more.
        """
        while not wait_for(self._ended, _LOOK_S):
            check_wanted()
        if self._problem is not None or self._files is None:
            name = ".".join(self.job.identifier)
            raise FileIOError(
                f"Spark could not rewrite {len(self.job.group.tasks)} files of {name}: "
                f"{self._problem or 'it wrote nothing'}",
                hint="Spark's own log says more; nothing of this group was committed",
            )
        return self._files


class GroupRewrites:
    """The groups that sessions are rewriting; they are lost with the planner process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, GroupRewrite] = {}

    def of(self, options: Options) -> GroupRewrite | None:
        """The group that options name; None if they name none.

        Raises:
            CommitFailedError: It is not being rewritten any more.
        """
        number = options.text(GROUP)
        return None if number is None else self.find(number)

    def find(self, number: str) -> GroupRewrite:
        """The group of an id.

        Raises:
            CommitFailedError: It is not being rewritten any more.
        """
        with self._lock:
            found = self._known.get(number)
        if found is None:
            raise CommitFailedError(
                f"No procedure is rewriting a group of files {number} any more",
                hint=f"call rewrite_data_files again; the option {GROUP} is set by it alone",
            )
        return found

    def add(self, rewrite: GroupRewrite) -> None:
        """Let reads and writes find a group."""
        with self._lock:
            self._known[rewrite.id] = rewrite

    def forget(self, rewrite: GroupRewrite) -> None:
        """Let nobody find it any more."""
        with self._lock:
            self._known.pop(rewrite.id, None)


class SessionEngine:
    """Rewrites groups by the session that called a procedure; see `GroupEngine`.

    Args:
        rewrites: Where the session's reads and writes find them.
        catalog: What the session calls the catalog of the tables.
        conversation: With the session.
    """

    def __init__(self, rewrites: GroupRewrites, catalog: str, conversation: Conversation) -> None:
        self._rewrites = rewrites
        self._catalog = catalog
        self._conversation = conversation

    def rewrite(self, job: GroupJob) -> Sequence[DataFile]:
        """See `GroupEngine.rewrite`."""
        rewrite = GroupRewrite(job)
        self._rewrites.add(rewrite)
        try:
            self._conversation.ask(rewrite.work(self._catalog))
            return rewrite.result()
        finally:
            self._rewrites.forget(rewrite)
