"""Work that a procedure asks of its session, and waits for."""

from __future__ import annotations

import base64
import json
import os
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.maintenance.folder_listing import ListedEntry
from icecomb.format.cancellation import Signal, wait_for
from icecomb.format.errors import CommitFailedError, FileIOError, UnsupportedError
from icecomb.format.spec.types import UUIDType
from icecomb.format.sql_statement import quoted_name
from icecomb.spark.planner.protocol.procedures import (
    ListedFolder,
    SessionListing,
    SessionQuery,
    SessionSketches,
)
from icecomb.spark.planner.table.states import below
from icecomb.spark.schema import check_has_type

if TYPE_CHECKING:
    from icecomb.catalog.maintenance.folder_listing import ListingJob
    from icecomb.catalog.maintenance.table_statistics import SketchJob
    from icecomb.format.spec.types import NestedField
    from icecomb.spark.planner.session.conversation import Asked, Conversation

_POLL_S: Final = 60.0


class PendingWork:
    """One piece of work done by a session."""

    def __init__(self) -> None:
        self.id = str(uuid.uuid4())
        self._ended = Signal()
        self._problem: str | None = None

    def end(self, problem: str | None) -> None:
        """Record that the session is done, or why it failed."""
        self._problem = problem
        self._ended.set()

    def wait(self, what: str) -> None:
        """Wait until the session is done with `what`, named in the error if it failed."""
        while not wait_for(self._ended, _POLL_S):
            pass
        if self._problem is not None:
            raise FileIOError(
                f"Spark could not {what}: {self._problem}",
                hint="Spark's own log says more; nothing of this was committed.",
            )


class PendingWorks:
    """The pending work of sessions; it is lost with the planner process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, PendingWork] = {}

    @contextmanager
    def known(self, work: PendingWork) -> Iterator[None]:
        """Let sessions find a piece of work within the context."""
        with self._lock:
            self._known[work.id] = work
        try:
            yield
        finally:
            with self._lock:
                del self._known[work.id]

    def end(self, number: str, problem: str | None) -> None:
        """Record that a session ended a piece of work; ignored if the procedure is over.

        A procedure that failed has reported why: its other pending work is not another failure.
        """
        with self._lock:
            found = self._known.get(number)
        if found is not None:
            found.end(problem)

    def find(self, number: str) -> PendingWork:
        """Find work by its id; a procedure must still wait for it."""
        with self._lock:
            found = self._known.get(number)
        if found is None:
            raise CommitFailedError(
                f"No procedure waits for work {number} of a session any more",
                hint="Call the procedure again; options that name such work are set by it only.",
            )
        return found


def query(works: PendingWorks, conversation: Conversation, statement: str) -> Iterator[Any]:
    """Yield the rows of a query run by the session, as dictionaries, from a temporary file."""

    def asked(number: str, file: str) -> SessionQuery:
        return SessionQuery(number, statement, file)

    yield from _lines(works, conversation, asked, f"answer {statement}")


class ListingSession:
    """An engine that lists folders in the session that called a procedure; see `FolderEngine`."""

    def __init__(self, works: PendingWorks, conversation: Conversation) -> None:
        self._works = works
        self._conversation = conversation

    def entries(self, job: ListingJob) -> Iterator[ListedEntry]:
        folders = tuple(ListedFolder(location, path) for location, path in job.folders)

        def asked(number: str, file: str) -> SessionListing:
            return SessionListing(
                number,
                folders,
                job.deep,
                job.hidden.folders,
                job.hidden.files,
                job.always,
                str(job.known),
                file,
            )

        what = f"list {len(folders)} folders, as {folders[0].location}"
        for row in _lines(self._works, self._conversation, asked, what):
            yield ListedEntry(row["folder"], row["name"], row["mtime_ms"], row["is_folder"])


class SketchingSession:
    """An engine that reads columns in the session that called a procedure; see `SketchEngine`.

    Args:
        catalog: The session's name for the tables' catalog.
    """

    def __init__(self, works: PendingWorks, catalog: str, conversation: Conversation) -> None:
        self._works = works
        self._catalog = catalog
        self._conversation = conversation

    def can_read(self, field: NestedField) -> bool:
        try:
            check_has_type(field)
        except UnsupportedError:
            return False
        return True

    def sketches(self, job: SketchJob) -> Iterator[bytes]:
        if job.base is None:
            table, read = below(job.identifier, f"snapshot_id_{job.snapshot_id}"), {}
        else:
            table = job.identifier
            read = {"start-snapshot-id": str(job.base), "end-snapshot-id": str(job.snapshot_id)}
        kinds = {quoted_name(*path): field.field_type for path, field in job.columns}
        columns = tuple(kinds)
        uuids = tuple(name for name in columns if isinstance(kinds[name], UUIDType))

        def asked(number: str, file: str) -> SessionSketches:
            place = quoted_name(self._catalog, *table)
            return SessionSketches(number, place, read, columns, uuids, file)

        what = f"read {len(columns)} columns of {'.'.join(job.identifier)}"
        for row in _lines(self._works, self._conversation, asked, what):
            yield base64.b64decode(row["sketch"])


def _lines(
    works: PendingWorks,
    conversation: Conversation,
    asked: Callable[[str, str], Asked],
    what: str,
) -> Iterator[Any]:
    """Yield the JSON objects that the session writes to a file, one per line."""
    number, name = tempfile.mkstemp(".json", "icecomb-rows-")
    os.close(number)
    path = Path(name)
    try:
        work = PendingWork()
        with works.known(work):
            conversation.ask(asked(work.id, name))
            work.wait(what)
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)
    finally:
        path.unlink(missing_ok=True)
