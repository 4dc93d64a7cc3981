"""Examination of tables: their contents are counted and findings derived; nothing is changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from icecomb.catalog.configuration.catalog_property import too_old_engines
from icecomb.catalog.health.table_health import (
    HealthFinding,
    TableFacts,
    TableHealth,
    worst_first,
)
from icecomb.catalog.report.finding import Severity
from icecomb.catalog.report.progress import Progress, each
from icecomb.format.errors import ConfigurationError, IcecombError, MetastoreError, ValidationError
from icecomb.format.inspect.file_census import WORKERS, CensusLimits, FileCensus, take_census
from icecomb.format.maintenance.rewrite_options import RewriteOptions, Strategy
from icecomb.format.manifests.manifest import ManifestContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.expiry.retention import Retention
from icecomb.format.property.table_property import (
    GC_ENABLED,
    INTEROP,
    MANIFEST_MIN_COUNT,
    MANIFEST_TARGET_BYTES,
    NAME_MAPPING,
)
from icecomb.format.property.way_back import has_way_back
from icecomb.format.shell_command import shell_command
from icecomb.format.spec.metadata_file import clock_skew

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.identifier import AbandonedLock, Identifier
    from icecomb.catalog.table.table import Table
    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO


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


def metadata_findings(examined: Examined) -> Iterator[HealthFinding]:
    """Yield the findings about the metadata."""
    yield from _many_manifests(examined)
    yield from _snapshots(examined)
    yield from _metadata_file(examined)
    yield from _old_engines(examined)
    if (skew := clock_skew(examined.metadata)) is not None:
        words = f"A clock is wrong: {skew}; no command fixes that: check the writers' clocks"
        yield HealthFinding("clock-skew", Severity.WARNING, words)


def _many_manifests(examined: Examined) -> Iterator[HealthFinding]:
    """Find the spec with the most manifests: a rewrite is of one spec."""
    properties = examined.metadata.properties
    least = max(MANIFEST_MIN_COUNT.of(properties), 2)
    target = MANIFEST_TARGET_BYTES.of(properties)
    worst: tuple[int, int, int, int] | None = None
    for spec_id, manifests in _by_spec(examined).items():
        needed = sum(
            -(-sum(m.manifest_length for m in manifests if m.content is content) // target)
            for content in ManifestContent
        )
        count = len(manifests)
        if count >= least and count >= 2 * needed and (worst is None or count > worst[0]):
            worst = (count, spec_id, needed, sum(m.manifest_length for m in manifests))
    if worst is not None:
        count, spec_id, needed, size = worst
        yield HealthFinding(
            "many-manifests",
            of_count(count, least),
            f"{count:,} manifests of {size:,} bytes, where {needed:,} would do: a scan opens many "
            "small files before it begins",
            {"manifests": count, "needed": needed, "bytes": size, "spec_id": spec_id},
            examined.remedies.rewrite_manifests(spec_id, examined.metadata.default_spec_id),
        )


def _snapshots(examined: Examined) -> Iterator[HealthFinding]:
    metadata, count = examined.metadata, examined.facts.snapshots
    retention = Retention.of(metadata, examined.now_ms)
    due = len(retention.expired_snapshots(metadata, retention.expired_refs(metadata)))
    if due < SNAPSHOTS and count < ALL_SNAPSHOTS:
        return
    old = due >= SNAPSHOTS
    kept = _kept(examined)
    text = (
        f"{due:,} of {count:,} snapshots are older than the table keeps them"
        if old
        else f"{count:,} snapshots, of which {due:,} may expire by the table's own limits: each "
        "commit rewrites all of them"
    )
    severe = due >= MANY * SNAPSHOTS or count >= MANY * ALL_SNAPSHOTS
    yield HealthFinding(
        "snapshot-bloat",
        Severity.PROBLEM if severe else Severity.WARNING,
        text + kept,
        {"snapshots": count, "expired_by_age": due, "older_than_ms": retention.older_than_ms},
        examined.remedies.expire_snapshots(*(() if old else _SOON)),
    )


def _metadata_file(examined: Examined) -> Iterator[HealthFinding]:
    facts, metadata = examined.facts, examined.metadata
    if facts.metadata_bytes < METADATA_BYTES:
        return
    growth = (
        ""
        if facts.metadata_growth is None
        else f", {facts.metadata_growth:+,} a day over the time of its log"
    )
    kept = _kept(examined)
    yield HealthFinding(
        "metadata-bloat",
        of_count(facts.metadata_bytes, METADATA_BYTES),
        f"The metadata file has {facts.metadata_bytes:,} bytes{growth}: each commit writes all of "
        f"it, with {facts.snapshots:,} snapshots, {len(metadata.schemas):,} schemas and "
        f"{len(metadata.partition_specs):,} specs{kept}",
        {
            "bytes": facts.metadata_bytes,
            "growth_bytes_a_day": facts.metadata_growth,
            "snapshots": facts.snapshots,
            "schemas": len(metadata.schemas),
            "metadata_log": len(metadata.metadata_log),
        },
        examined.remedies.expire_snapshots("--clean-metadata"),
    )


def _old_engines(examined: Examined) -> Iterator[HealthFinding]:
    """Find engines of the table's list that cannot read its format version in older versions."""
    metadata = examined.metadata
    if INTEROP.key not in metadata.properties:
        return
    try:
        engines = INTEROP.of(metadata.properties)
    except ConfigurationError as error:
        text = f"It is unknown whether engines are too old to read it: {error.message}"
        yield HealthFinding("old-engines", Severity.NOTE, text)
        return
    if old := too_old_engines(engines, metadata.format_version):
        yield HealthFinding(
            "old-engines",
            Severity.WARNING,
            f"{old} cannot read it, of format version {metadata.format_version}: no command fixes "
            "that; use these versions or newer ones, or copy its rows to a table of version 2",
            {"format_version": metadata.format_version, "engines": list(engines)},
        )


_SOON = ("--older-than", "1d", "--retain-last", "100")


def _kept(examined: Examined) -> str:
    """Return why nothing may expire, to be added to a message; empty if snapshots may."""
    properties = examined.metadata.properties
    if GC_ENABLED.of(properties):
        return ""
    if has_way_back(properties):
        name = examined.remedies.name
        known = "TABLE" if "/" in name else name  # to migrate, which takes no folders
        return (
            f"; {GC_ENABLED.key} is false, so nothing may expire before "
            f"`{shell_command('migrate', 'finalize', known)}` gives up the way back to the Hive "
            "table"
        )
    return f"; {GC_ENABLED.key} is false, so nothing may expire until no other table uses the files"


def _by_spec(examined: Examined) -> dict[int, list[ManifestFile]]:
    found: dict[int, list[ManifestFile]] = {}
    for manifest in examined.census.manifests:
        found.setdefault(manifest.partition_spec_id, []).append(manifest)
    return found


def file_findings(examined: Examined) -> Iterator[HealthFinding]:
    """Yield the findings about the files."""
    yield from _small_files(examined)
    yield from _delete_heavy(examined)
    yield from _equality_deletes(examined)
    yield from _dangling_deletes(examined)
    yield from _skewed(examined)
    yield from _unsorted(examined)
    yield from _old_spec(examined)


def _small_files(examined: Examined) -> Iterator[HealthFinding]:
    """Find files that `rewrite_data_files` selects for their size, by Iceberg's rules.

    A group is a partition; files of older specs are one group.
    """
    rewrite = examined.rewrite
    target = rewrite.target_bytes
    counts = [
        (table["small_files"], table["small_bytes"])
        for number, table in examined.census.partitions.items()
        if number == examined.metadata.default_spec_id
    ]
    older = examined.old_spec_ids
    old = [examined.census.total(name, older) for name in ("small_files", "small_bytes")]
    counts.append((np.array(old[:1], np.int64), np.array(old[1:], np.int64)))
    files = np.concatenate([each for each, _ in counts])
    sizes = np.concatenate([each for _, each in counts])
    worth = (files > 1) & ((files >= rewrite.min_input_files) | (sizes > target))
    if not worth.any():
        return
    count, size, most = int(files[worth].sum()), int(sizes[worth].sum()), int(files[worth].max())
    yield HealthFinding(
        "small-files",
        of_count(most, rewrite.min_input_files),
        f"{count:,} of {examined.facts.files:,} data files are below 3/4 of the target size, "
        f"up to {most:,} in a partition; they average {size // count:,} bytes",
        {
            "small_files": count,
            "small_bytes": size,
            "groups": int(worth.sum()),
            "most_in_a_group": most,
            "target_bytes": target,
        },
        examined.remedies.rewrite_data_files(),
    )


def _delete_heavy(examined: Examined) -> Iterator[HealthFinding]:
    parts = examined.census.partitions.values()
    names = ("position_deletes", "rows", "position_delete_files", "files")
    columns = [np.concatenate([t[name] for t in parts] or [_NONE]) for name in names]
    deleted, rows, delete_files, files = columns
    share = np.divide(deleted, rows, out=np.zeros(len(rows)), where=rows > 0)
    by_rows = share >= DELETED_SHARE
    least = examined.rewrite.min_input_files
    by_files = (delete_files >= least) & (delete_files > files) & (files > 0)
    heavy = by_rows | by_files
    if not heavy.any():
        return
    remedies = examined.remedies
    gone, there = int(deleted[heavy].sum()), int(rows[heavy].sum())
    by_count = of_count(int(delete_files[by_files].max(initial=0)), least)
    yield HealthFinding(
        "delete-heavy",
        Severity.PROBLEM if there and gone >= SERIOUS_SHARE * there else by_count,
        f"{gone:,} of {there:,} rows are deleted by position in {int(heavy.sum()):,} partitions, "
        f"by {int(delete_files[heavy].sum()):,} files: each scan reads these and filters rows",
        {
            "partitions": int(heavy.sum()),
            "position_deletes": gone,
            "rows": there,
            "position_delete_files": int(delete_files[heavy].sum()),
            "data_files": int(files[heavy].sum()),
            "greatest_share": round(float(share[heavy].max()), 4),
        },
        remedies.apply_deletes() if by_rows.any() else remedies.rewrite_position_delete_files(),
    )


def _equality_deletes(examined: Examined) -> Iterator[HealthFinding]:
    facts = examined.facts
    if facts.equality_delete_files:
        yield HealthFinding(
            "equality-deletes",
            of_count(facts.equality_delete_files, 1),
            f"{facts.equality_delete_files:,} files of equality deletes with "
            f"{facts.equality_deletes:,} rows: each scan compares rows with them, and some readers "
            "cannot",
            {
                "equality_delete_files": facts.equality_delete_files,
                "equality_deletes": facts.equality_deletes,
            },
            examined.remedies.convert_equality_deletes(),
        )


def _dangling_deletes(examined: Examined) -> Iterator[HealthFinding]:
    dangling = examined.census.dangling
    if dangling.files:
        yield HealthFinding(
            "dangling-deletes",
            Severity.WARNING,
            f"{dangling.files:,} delete files of {dangling.size:,} bytes no longer apply to any "
            "data file, and are planned with in each scan",
            {"delete_files": dangling.files, "bytes": dangling.size},
            examined.remedies.rewrite_data_files({"remove-dangling-deletes": "true"}),
        )


def _skewed(examined: Examined) -> Iterator[HealthFinding]:
    spec = examined.metadata.spec()
    table = examined.census.partitions.get(spec.spec_id)
    if table is None or spec.is_unpartitioned:
        return
    sizes = table["bytes"]
    sizes = sizes[table["files"] > 0]
    largest, median = (int(sizes.max()), int(np.median(sizes))) if len(sizes) else (0, 0)
    if largest > SKEW_BYTES and largest > SKEW * median:
        yield HealthFinding(
            "skewed-partitions",
            Severity.WARNING,
            f"The largest of {len(sizes):,} partitions has {largest:,} bytes, the median "
            f"{median:,}: no command fixes that; another field in the spec (table.update_spec, "
            "ALTER TABLE … ADD PARTITION FIELD bucket(…)) distributes new rows",
            {"partitions": len(sizes), "largest_bytes": largest, "median_bytes": median},
        )


def _unsorted(examined: Examined) -> Iterator[HealthFinding]:
    files, size = (examined.census.total(name) for name in ("unsorted_files", "unsorted_bytes"))
    if files >= examined.rewrite.min_input_files:
        yield HealthFinding(
            "unsorted",
            _from_share(size, examined.facts.size),
            f"{files:,} of {examined.facts.files:,} data files are not in the table's sort order: "
            "their bounds skip fewer files in a scan",
            {"files": files, "bytes": size, **_order(examined)},
            examined.remedies.rewrite_data_files({"rewrite-all": "true"}, strategy="sort"),
        )


def _old_spec(examined: Examined) -> Iterator[HealthFinding]:
    older = examined.old_spec_ids
    files, size = (examined.census.total(name, older) for name in ("files", "bytes"))
    if files:
        spec = examined.metadata.spec()
        yield HealthFinding(
            "old-spec",
            _from_share(size, examined.facts.size),
            f"{files:,} of {examined.facts.files:,} data files have an older partition spec: "
            "filters on the fields of the current one do not skip them",
            {"files": files, "bytes": size, "spec_id": spec.spec_id, "old_spec_ids": older},
            examined.remedies.rewrite_data_files({"rewrite-all": "true"}),
        )


def _order(examined: Examined) -> dict[str, Any]:
    return {"sort_order_id": examined.metadata.default_sort_order_id}


def _from_share(part: int, whole: int) -> Severity:
    """Return the severity: more than a note from about half of the bytes on."""
    return Severity.WARNING if whole and part >= whole * SERIOUS_SHARE else Severity.NOTE


_NONE = np.zeros(0, np.int64)


DELETED_SHARE: Final = 0.1
"""Share of a partition's rows deleted by position: Amoro's
`self-optimizing.major.trigger.duplicate-ratio`."""
SNAPSHOTS: Final = 100
"""Snapshots that may expire by the table's own limits: as many as Iceberg keeps metadata files
(`write.metadata.previous-versions-max`)."""
ALL_SNAPSHOTS: Final = 1000
"""Snapshots of any age: all of them are read and written by every commit."""
METADATA_BYTES: Final = 8 << 20
"""The metadata file is written whole by every commit; Iceberg keeps manifests to 8 MiB for that
reason (`commit.manifest.target-size-bytes`)."""
SKEW: Final = 5
"""Factor of the largest partition compared to the median: Spark's
`spark.sql.adaptive.skewJoin.skewedPartitionFactor`."""
SKEW_BYTES: Final = 256 << 20
"""Least bytes of that partition: Spark's `skewedPartitionThresholdInBytes`."""
MANY: Final = 10
"""Factor of a threshold that makes a problem."""
SERIOUS_SHARE: Final = 0.5
"""Share of the table's bytes from which on a note becomes a warning, and of deleted rows from which
on a warning becomes a problem."""


def of_count(count: int, threshold: int) -> Severity:
    """Return the severity of a count: a problem at ten times its threshold."""
    return Severity.PROBLEM if count >= MANY * threshold else Severity.WARNING


@dataclass(frozen=True, slots=True)
class Examined:
    """The known facts of a table from which findings are derived.

    Attributes:
        rewrite: The options that a rewrite of its data files would have.
        census: The counted files of its current snapshot.
        now_ms: The end of ages, in milliseconds since the epoch.
    """

    metadata: TableMetadata
    io: FileIO
    rewrite: RewriteOptions
    census: FileCensus
    facts: TableFacts
    remedies: Remedies
    now_ms: int

    @property
    def old_spec_ids(self) -> list[int]:
        """The specs of files other than the one of new files."""
        default = self.metadata.default_spec_id
        return [number for number in self.census.partitions if number != default]


def rewrite_of(metadata: TableMetadata) -> RewriteOptions:
    """Return the options that a rewrite of a table's data files would have."""
    return RewriteOptions.read({}, Strategy.BIN_PACK, metadata.properties)


def limits_of(metadata: TableMetadata, rewrite: RewriteOptions) -> CensusLimits:
    """Return the limits of small files of a table, and the further counts to take."""
    order = metadata.default_sort_order_id
    return CensusLimits(
        small=rewrite.min_file_bytes,
        sort_order_id=order if metadata.sort_order().fields else None,
        by_snapshot=bool(NAME_MAPPING.of(metadata.properties)),
    )


Words = tuple[str, ...]


def name_of(table: Table) -> str:
    """Return a table's name for commands; its folder if the name would be misread."""
    pointer = table._pointer.name  # noqa: SLF001 - a table opened by its folder is called by it
    if "/" in pointer:
        return pointer
    parts = table.name()
    if any("." in part or "/" in part or not part for part in parts):
        return table.location()
    return ".".join(parts)


class Remedies:
    """The commands for one table; actions that it does not allow are not offered."""

    def __init__(self, table: Table) -> None:
        self._actions = table.maintenance
        self.name = name_of(table)
        pointer = table._pointer  # noqa: SLF001 - no other knows
        self._is_writable = _passes(pointer.check_writable, table)
        may_delete = GC_ENABLED.of(table.properties) and _passes(table._check_deletable, table)  # noqa: SLF001 - no other knows
        self._may_delete = may_delete

    def expire_snapshots(self, *options: str) -> Words | None:
        """Return a dry run of an expiration."""
        return self._action("expire_snapshots", options) if self._may_delete else None

    def remove_orphan_files(self) -> Words | None:
        """Return a dry run of a clean-up."""
        return self._action("remove_orphan_files") if self._may_delete else None

    def rewrite_manifests(self, spec_id: int, default_spec_id: int) -> Words | None:
        """Return a rewrite of the manifests of a spec."""
        options = () if spec_id == default_spec_id else ("--spec-id", str(spec_id))
        return self._action("rewrite_manifests", options)

    def rewrite_data_files(
        self, options: Mapping[str, str] | None = None, *, strategy: str | None = None
    ) -> Words | None:
        """Return a rewrite of data files, with their deletes applied."""
        words = () if strategy is None else ("--strategy", strategy)
        for key, value in (options or {}).items():
            words = (*words, "--option", f"{key}={value}")
        return self._action("rewrite_data_files", words)

    def convert_equality_deletes(self) -> Words | None:
        """Return a conversion of equality to position deletes; else a rewrite that applies them."""
        return self._action("convert_equality_deletes") or self.apply_deletes()

    def rewrite_position_delete_files(self) -> Words | None:
        """Return a rewrite of files of position deletes; else a rewrite that applies them."""
        return self._action("rewrite_position_delete_files") or self.apply_deletes()

    def apply_deletes(self) -> Words | None:
        """Return a rewrite of files that have deletes, without the deleted rows."""
        return self.rewrite_data_files(
            {"delete-file-threshold": "1", "remove-dangling-deletes": "true"}
        )

    def _action(self, action: str, options: Sequence[str] = ()) -> Words | None:
        if not self._is_writable or not hasattr(self._actions, action):
            return None
        name = ("--", self.name) if self.name.startswith("-") else (self.name,)
        return ("maintain", action.replace("_", "-"), *options, *name)


def break_lock(lock_id: int) -> Words:
    """Return the command that releases a lock whose holder is dead."""
    return ("locks", "break", str(lock_id), "--yes")


def _passes(check: Callable[[TableMetadata], None], table: Table) -> bool:
    try:
        check(table.metadata)
    except IcecombError:
        return False
    return True
