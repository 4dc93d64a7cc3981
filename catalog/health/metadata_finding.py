"""Findings about the metadata of a table: manifests, snapshots and the metadata file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from icecomb.catalog.configuration.engine_version import too_old_engines
from icecomb.catalog.health.table_health import HealthFinding
from icecomb.catalog.health.threshold import (
    ALL_SNAPSHOTS,
    MANY,
    METADATA_BYTES,
    SNAPSHOTS,
    of_count,
)
from icecomb.catalog.report.finding import Severity
from icecomb.format.errors import ConfigurationError
from icecomb.format.manifests.manifest import ManifestContent
from icecomb.format.operation.expiry.retention import Retention
from icecomb.format.property.table_property import (
    GC_ENABLED,
    INTEROP,
    MANIFEST_MIN_COUNT,
    MANIFEST_TARGET_BYTES,
)
from icecomb.format.property.way_back import has_way_back
from icecomb.format.shell_command import shell_command
from icecomb.format.spec.clock_skew import clock_skew

if TYPE_CHECKING:
    from icecomb.catalog.health.examined import Examined
    from icecomb.format.manifests.manifest import ManifestFile


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
