"""File groups that a Spark session rewrites for a procedure.

A procedure asks its session to read a group and to write its rows. Both name the group by an
option; the written files go to the procedure, which commits them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import CommitFailedError, FileIOError
from icecomb.format.rows.values.metadata_columns import lineage
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.sql_statement import quoted_name
from icecomb.spark.planner.protocol.procedures import SessionWork
from icecomb.spark.planner.session.session_work import PendingWork, PendingWorks
from icecomb.spark.planner.table.selectors import MOVED_ROWS
from icecomb.spark.planner.table.states import below

if TYPE_CHECKING:
    from icecomb.catalog.maintenance.engine import RewriteJob
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.spark.planner.options import Options
    from icecomb.spark.planner.session.conversation import Conversation
    from icecomb.spark.planner.table.states import TableState

GROUP: Final = "icecomb-rewrite-group"
"""The option of a read and of a write that names a group."""


class SessionRewrite(PendingWork):
    """A file group while a session rewrites it."""

    def __init__(self, job: RewriteJob) -> None:
        super().__init__()
        self.job = job
        self._files: Sequence[DataFile] | None = None

    def work(self, catalog: str) -> SessionWork:
        """Return the work to ask of the session, by its name for the table's catalog."""
        job, here = self.job, {GROUP: self.id}
        reading = {"split-size": str(job.group.split_size), "file-open-cost": "1"}
        writing = {"target-file-size-bytes": str(job.file_bytes)}
        name = job.identifier
        if lineage(job.metadata):
            name = below(name, MOVED_ROWS)
        return SessionWork(self.id, quoted_name(catalog, *name), here | reading, here | writing)

    def check(self, state: TableState) -> None:
        """Check that the session has found the group's table, with the same columns."""
        ours, found = self.job.metadata, state.metadata
        if (ours.table_uuid, ours.current_schema_id) != (found.table_uuid, found.current_schema_id):
            raise CommitFailedError(
                f"Table {state.name} got other columns while its files were being rewritten",
                hint="Call rewrite_data_files again; REFRESH TABLE before, if it is cached.",
                table=state.name,
            )

    def tasks(self) -> deque[FileScanTask]:
        """Return tasks for whole files: the filter that selected them does not select rows."""
        group = self.job.group
        return deque(FileScanTask(t.file, t.delete_files, spec=t.spec) for t in group.tasks)

    def take(self, files: Sequence[DataFile]) -> None:
        """Keep the written files for the procedure."""
        self._files = files

    def discard(self) -> None:
        """Delete written files that will not be committed."""
        self.job.io.delete([file.file_path for file in self._files or ()])

    def result(self) -> Sequence[DataFile]:
        """Wait for the written files and return them.

        `FileIOError` if the session could not write them; `OperationCanceledError` if nobody waits
        for the procedure any more.
        """
        job = self.job
        what = f"rewrite {len(job.group.tasks)} files of {'.'.join(job.identifier)}"
        self.wait(what)
        if self._files is None:
            raise FileIOError(
                f"Spark could not {what}: it wrote nothing",
                hint="Nothing was committed; please report it with the table's properties.",
            )
        return self._files


def named_group(works: PendingWorks, options: Options) -> SessionRewrite | None:
    """Return the group named by options; None if they name none."""
    number = options.text(GROUP)
    return None if number is None else group(works, number)


def group(works: PendingWorks, number: str) -> SessionRewrite:
    """Return the group with an id, which must still be being rewritten."""
    found = works.find(number)
    if not isinstance(found, SessionRewrite):
        raise CommitFailedError(
            f"Work {number} of a session is not about a group of files",
            hint=f"The option {GROUP} is set by rewrite_data_files only.",
        )
    return found


class SessionEngine:
    """An engine that rewrites groups in the session that called a procedure: `RewriteEngine`.

    Args:
        works: The registry in which the session's reads and writes find groups.
        catalog: The session's name for the tables' catalog.
    """

    def __init__(self, works: PendingWorks, catalog: str, conversation: Conversation) -> None:
        self._works = works
        self._catalog = catalog
        self._conversation = conversation

    def rewrite(self, job: RewriteJob) -> Sequence[DataFile]:
        rewrite = SessionRewrite(job)
        with self._works.known(rewrite):
            self._conversation.ask(rewrite.work(self._catalog))
            try:
                return rewrite.result()
            except BaseException:
                # a session may fail after its write succeeded
                rewrite.discard()
                raise
