"""Active writers of Hive and Spark that began before a table was converted.

A writer that began with the Hive table ends with it, whatever the entry says by then: Hive moves
its files where it planned to, under free names as long as a partition has its entry, and over
existing files if it has none (Hive.loadPartition, replaceFiles). Such writers are recognized by a
working folder, or by a lock.
"""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from icecomb.catalog.hive.lock import abandoned_locks, describe_holder
from icecomb.catalog.migrate.source.source_files import AHEAD, plain_folders
from icecomb.catalog.report.progress import SILENT, THREADS, each
from icecomb.format.cancellation import pause
from icecomb.format.errors import MetastoreError, MigrationError, NoSuchFileError

if TYPE_CHECKING:
    from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
    from icecomb.catalog.migrate.journal.context import MigrationContext

WAIT_S: Final = 600.0
"""Seconds to wait for active writers."""
_OF_IMPALA: Final = "_impala_insert_staging"
"""A folder that stays in the table's folder, and is empty while no writer is active."""
_WORKED_IN: Final = re.compile(
    rf"\.hive-staging.*|\.spark-staging-.*|_temporary|{_OF_IMPALA}"
    r"|.*_hive_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_.*"
)
"""Working folders of writers; the last are Hive's under another hive.exec.stagingdir."""
_STARTED: Final = re.compile(r"_hive_(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d)_")
_LEFT_S: Final = 86_400.0
"""Seconds without change after which a working folder counts as abandoned."""
_POLL_S: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_SHOWN: Final = 3


class WritersInFlight:
    """The active writers of one table as it was planned.

    Args:
        partitions: Returns the table's partitions; called repeatedly.
        wait_s: Seconds to wait for the writers.
    """

    def __init__(
        self,
        context: MigrationContext,
        table: HiveTable,
        partitions: Callable[[], Iterable[HivePartition]],
        wait_s: float = WAIT_S,
        threads: int = THREADS,
    ) -> None:
        self._context = context
        self._table = table
        self._partitions = partitions
        self._wait_s = wait_s
        self._threads = threads

    def wait(self, otherwise: str, *, locks: bool) -> None:
        """Wait until all writers have ended.

        Args:
            otherwise: The state of the table for the error if they do not end in time.
            locks: Whether to wait for current holders of locks, too.
        """
        said, until = False, time.monotonic() + self._wait_s
        rows = self._lock_rows() if locks else {}
        passed: set[str] = set()
        folders = list(self._all(passed))
        attempt = 0
        while folders or rows:
            at_work = [*folders, *rows.values()]
            more = f" and {len(at_work) - _SHOWN} more" if len(at_work) > _SHOWN else ""
            who = ", ".join(at_work[:_SHOWN]) + more
            if time.monotonic() >= until:
                raise MigrationError(
                    f"{self._table.full_name} is being written to: {who}; {otherwise}",
                    hint="Apply again when these writers have ended; `icecomb migrate apply "
                    "--wait` waits longer; remove the folders of those that are dead.",
                    table=self._table.full_name,
                )
            if not said:
                self._context.progress.say(f"waiting for writers of {self._table.full_name}: {who}")
                said = True
            pause(min(_POLL_S[min(attempt, len(_POLL_S) - 1)], max(0.0, until - time.monotonic())))
            attempt += 1
            rows = {one: row for one, row in self._lock_rows().items() if one in rows}
            # Others may have begun elsewhere: all folders are listed before the wait ends.
            folders = [one for one in folders if self._is_at_work(one, passed)] or list(
                self._all(passed)
            )
        if passed:
            self._context.progress.say(
                f"{len(passed)} folders of writers have not changed for a day, and are taken for "
                f"abandoned ones: {min(passed)}"
            )

    def in_table_folder(self) -> str | None:
        """Return the working folder of a writer in the table's own folder, without waiting."""
        return next(iter(self._in_folder(self._table.storage.location or "", set())), None)

    def _lock_rows(self) -> dict[int, str]:
        client = self._context.client
        try:
            rows = client.locks(self._context.database, self._context.name)
            dead = abandoned_locks(client, rows)
        except MetastoreError:  # it has no locks
            return {}
        return {row.lock_id: describe_holder(row) for row in rows if row not in dead}

    def _all(self, passed: set[str]) -> Iterator[str]:
        """Yield the working folders of writers in all folders that may have some."""
        found = each(
            SILENT,
            "",
            "",
            self._candidate_folders(),
            lambda folder: self._in_folder(folder, passed),
            self._threads,
            ahead=AHEAD,
        )
        for some in found:
            yield from some

    def _candidate_folders(self) -> Iterator[str]:
        """Yield the folders of the table and its partitions, even of unregistered ones."""
        root, settings = (
            (self._table.storage.location or "").rstrip("/"),
            self._context.io.properties,
        )
        yield root
        seen: set[str] = set()
        level = [root]
        for _ in self._table.partition_keys:
            level = [
                f"{folder}/{name}"
                for folder in level
                for name in self._folders(folder)
                if "=" in name and not name.startswith((".", "_"))
            ]
            seen.update(plain_folders(settings, level))
            yield from level
        for one in self._partitions() if self._table.partition_keys else ():
            location = one.storage.location
            if location and plain_folders(settings, [location])[0] not in seen:
                yield location

    def _in_folder(self, folder: str, passed: set[str]) -> list[str]:
        names = filter(_WORKED_IN.fullmatch, self._folders(folder))
        found = (f"{folder.rstrip('/')}/{name}" for name in names)
        return [one for one in found if self._is_at_work(one, passed)]

    def _is_at_work(self, folder: str, passed: set[str]) -> bool:
        io = self._context.io
        try:
            if not io.is_folder(folder):
                passed.discard(folder)
                return False
            changes = [status.mtime_ms / 1000 for status in io.list(folder)]
        except NoSuchFileError:
            return False
        if not changes and folder.endswith(f"/{_OF_IMPALA}"):
            return False
        if begun := _STARTED.search(folder):
            # By the clock of a server in any time zone.
            changes.append(_seconds(begun[1]))
        newest = max(changes, default=time.time())
        if newest and newest < time.time() - _LEFT_S:
            passed.add(folder)
            return False
        return True

    def _folders(self, folder: str) -> Iterable[str]:
        try:
            return self._context.io.folders(folder)
        except NoSuchFileError:
            return ()


def _seconds(text: str) -> float:
    try:
        return (
            dt.datetime.strptime(text, "%Y-%m-%d_%H-%M-%S")
            .replace(tzinfo=dt.timezone.utc)
            .timestamp()
        )
    except ValueError:
        return 0.0
