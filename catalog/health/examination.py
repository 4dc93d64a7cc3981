"""Examination of tables: their contents are counted and findings derived; nothing is changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from icecomb.catalog.health.command import Remedies, break_lock, name_of
from icecomb.catalog.health.examined import Examined, limits_of, rewrite_of
from icecomb.catalog.health.file_finding import file_findings
from icecomb.catalog.health.metadata_finding import metadata_findings
from icecomb.catalog.health.table_health import (
    HealthFinding,
    TableFacts,
    TableHealth,
    worst_first,
)
from icecomb.catalog.report.finding import Severity
from icecomb.catalog.report.progress import Progress, each
from icecomb.format.errors import IcecombError, MetastoreError, ValidationError
from icecomb.format.inspect.file_census import WORKERS, FileCensus, take_census
from icecomb.format.manifests.manifest_list import read_manifests

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.identifier import AbandonedLock, Identifier
    from icecomb.catalog.table.table import Table
    from icecomb.format.maintenance.rewrite_options import RewriteOptions

_DAY_MS: Final = 86_400_000
LockedTables = Callable[["Table"], "Sequence[AbandonedLock] | MetastoreError"]


def examine(table: Table, *, orphans: bool = False) -> TableHealth:
    """Examine a table as of when this object was loaded; see `Maintenance.health`."""
    return _Examination(table, orphans=orphans).result(_asked_for)


def examine_all(
    catalog: Catalog,
    names: Iterable[Identifier],
    *,
    orphans: bool,
    jobs: int,
    progress: Progress,
) -> Iterator[TableHealth]:
    """Examine the health of a catalog's tables; see `check_health`."""
    places = list(names)
    threads = max(1, WORKERS // min(jobs, max(len(places), 1)))
    locks = _once(catalog) if len(places) > 1 else _asked_for

    def health(name: Identifier) -> TableHealth:
        table = catalog.load_table(name)
        return _Examination(table, orphans=orphans, threads=threads).result(locks)

    def attempt(name: Identifier) -> TableHealth:
        return attempted(".".join(name), lambda: health(name))

    yield from each(progress, "examining", "tables", places, attempt, jobs, ahead=4 * jobs)


def attempted(name: str, work: Callable[[], TableHealth]) -> TableHealth:
    """Return the result of an examination, or the error of a table that cannot be read."""
    try:
        return work()
    except IcecombError as error:
        return TableHealth(name, error=error.message, hint=error.hint)
    except Exception as error:  # noqa: BLE001 - one table must not stop the others
        return TableHealth(name, error=f"{type(error).__name__}: {error}")


def _asked_for(table: Table) -> Sequence[AbandonedLock] | MetastoreError:
    try:
        return table.catalog.abandoned_locks(table.name())
    except MetastoreError as error:
        return error


def _once(catalog: Catalog) -> LockedTables:
    """Return abandoned locks by table, requested once for all tables."""
    try:
        found: list[AbandonedLock] = catalog.abandoned_locks()
    except MetastoreError as error:
        problem = error
        return lambda _: problem
    return lambda table: [one for one in found if one.identifier == table.name()]


class _Examination:
    """One examination of a table."""

    def __init__(self, table: Table, *, orphans: bool, threads: int = WORKERS) -> None:
        self._table = table
        self._metadata = table.metadata
        self._orphans = orphans
        self._threads = threads
        self._name = name_of(table)

    def result(self, locks: LockedTables) -> TableHealth:
        """Return the table's health."""
        metadata, io = self._metadata, self._table.io
        rewrite = rewrite_of(metadata)
        census = self._census(rewrite)
        examined = Examined(
            metadata,
            io,
            rewrite,
            census,
            self._facts(census),
            Remedies(self._table),
            int(time.time() * 1000),
        )
        findings = [
            *file_findings(examined),
            *metadata_findings(examined),
            *_without_ids(examined),
            *self._locks(locks),
            *(self._orphan_files(examined) if self._orphans else ()),
        ]
        return TableHealth(self._name, worst_first(findings), examined.facts)

    def _census(self, rewrite: RewriteOptions) -> FileCensus:
        metadata, io = self._metadata, self._table.io
        snapshot = metadata.current_snapshot()
        if snapshot is None:
            return FileCensus()
        limits = limits_of(metadata, rewrite)
        return take_census(
            metadata, io, read_manifests(io, snapshot), limits, threads=self._threads
        )

    def _facts(self, census: FileCensus) -> TableFacts:
        metadata, io = self._metadata, self._table.io
        size = io.size(self._table.metadata_location)
        snapshot = metadata.current_snapshot()
        return TableFacts(
            format_version=metadata.format_version,
            files=census.total("files"),
            size=census.total("bytes"),
            rows=census.total("rows"),
            position_delete_files=census.total("position_delete_files"),
            position_deletes=census.total("position_deletes"),
            equality_delete_files=census.total("equality_delete_files"),
            equality_deletes=census.total("equality_deletes"),
            partitions=sum(
                int(np.count_nonzero(part["files"])) for part in census.partitions.values()
            ),
            manifests=len(census.manifests),
            manifest_bytes=sum(m.manifest_length for m in census.manifests),
            snapshots=len(metadata.snapshots),
            metadata_bytes=size,
            metadata_growth=self._growth(size),
            committed_ms=None if snapshot is None else snapshot.timestamp_ms,
        )

    def _growth(self, size: int) -> int | None:
        """Return growth in bytes a day since the oldest file of the log; reads one file's size."""
        log = self._metadata.metadata_log
        if not log:
            return None
        oldest = log[0]
        span_ms = self._metadata.last_updated_ms - oldest.timestamp_ms
        # the cluster that a table was moved from may not answer
        here = self._table.metadata_location.rpartition("/")[0]
        if span_ms <= 0 or oldest.metadata_file.rpartition("/")[0] != here:
            return None
        try:
            before = self._table.io.size(oldest.metadata_file)
        except (IcecombError, OSError):
            return None
        return round((size - before) * _DAY_MS / max(span_ms, _DAY_MS))

    def _locks(self, locks: LockedTables) -> Iterator[HealthFinding]:
        found = locks(self._table)
        if isinstance(found, MetastoreError):
            text = f"It is unknown whether it is locked: {found.message}"
            yield HealthFinding("stale-lock", Severity.NOTE, text)
            return
        for lock in found:
            yield HealthFinding(
                "stale-lock",
                Severity.PROBLEM,
                f"It is locked by a holder that must be dead, and writers wait: {lock.holder}",
                {"lock_id": lock.lock_id, "holder": lock.holder},
                break_lock(lock.lock_id),
            )

    def _orphan_files(self, examined: Examined) -> Iterator[HealthFinding]:
        try:
            found = self._table.maintenance.remove_orphan_files()
        except (IcecombError, OSError) as error:
            said = error.message if isinstance(error, IcecombError) else str(error)
            severity = Severity.WARNING
            if isinstance(error, ValidationError):
                severity, said = Severity.NOTE, f"{said}. {error.hint or ''}".strip()
            yield HealthFinding("orphans", severity, f"It is unknown whether there are any: {said}")
            return
        if found.orphan_file_location:
            yield HealthFinding(
                "orphans",
                Severity.WARNING,
                f"{len(found.orphan_file_location):,} files in the table's folder are older than "
                "three days, and nothing refers to them",
                {
                    "files": len(found.orphan_file_location),
                    "examples": list(found.orphan_file_location[:5]),
                },
                examined.remedies.remove_orphan_files(),
            )


def _without_ids(examined: Examined) -> Iterator[HealthFinding]:
    sources = examined.census.sources
    if not sources:
        return
    from icecomb.format.inspect.files_without_ids import files_without_ids

    found = files_without_ids(examined.metadata, examined.io, sources)
    if found.files:
        yield HealthFinding(
            "hive-files-without-ids",
            Severity.WARNING,
            f"{found.files:,} of {examined.facts.files:,} data files have no field ids: their "
            "columns are found by name, which not every reader does, and only while "
            "schema.name-mapping.default knows the names",
            {
                "files": found.files,
                "snapshots_looked_at": found.looked_at,
                "files_not_looked_at": found.not_looked_at,
                "example": found.example,
            },
            examined.remedies.rewrite_data_files({"rewrite-all": "true"}),
        )
