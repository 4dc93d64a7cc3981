"""The requirements of each engine on a table and its entry in a metastore.

Hive reads an Iceberg table by its entry's storage handler; newer versions do without (HIVE-28323).
Impala recognizes one by storage handler or input format, newer versions by ``table_type`` as well
(IcebergTable.isIcebergTable). Spark and Trino look at ``table_type``, which icecomb always writes,
and all of them read format versions 1 and 2; newer versions of Hive and Impala read version 3.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from icecomb.catalog.configuration.catalog_property import ENGINE_ENABLED, too_old_engines
from icecomb.catalog.hive.parameters import is_read_by_handler
from icecomb.catalog.report.finding import Finding, Severity
from icecomb.format.errors import ConfigurationError, IcecombError, ValidationError, reason_of
from icecomb.format.property.table_property import HIVE_ENGINE, INTEROP
from icecomb.format.shell_command import shell_command
from icecomb.format.spec.types import TimestampType, TimestamptzType
from icecomb.format.sql_statement import printed_name

if TYPE_CHECKING:
    from icecomb.catalog.hive.thrift.entity import HiveTable
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

_BY_HANDLER: Final = ("hive", "impala")
_OTHER_NAMES: Final = ("iceberg.table_identifier", "name", "iceberg.mr.table.identifier")
"""Parameters by which Impala takes an entry for another table's (IcebergTable.verifyTable)."""
_ALL: Final = INTEROP.read("hive,spark,trino,impala")
_CODE: Final = "engines"
_EXAMINED: Final = 16


def engine_names(wanted: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """Return names of engines, given one by one or separated by commas; None for None."""
    if wanted is None:
        return None
    return INTEROP.read(wanted if isinstance(wanted, str) else ",".join(wanted))


def engine_properties(
    wanted: str | Iterable[str] | None, properties: Mapping[str, str], settings: Mapping[str, str]
) -> dict[str, str]:
    """Return the properties of a table that the given engines will use.

    None means all engines that the table and the catalog do not exclude; `properties` are those of
    the table, as far as known.
    """
    engines = engine_names(wanted)
    chosen = HIVE_ENGINE.of(properties) if HIVE_ENGINE.key in properties else None
    if engines is None:
        by_catalog = any(key in settings for key in (ENGINE_ENABLED.key, *ENGINE_ENABLED.also))
        allowed = chosen
        if allowed is None:
            allowed = ENGINE_ENABLED.of(settings) if by_catalog else True
        engines = tuple(name for name in _ALL if allowed or name not in _BY_HANDLER)
    else:
        excluded = [name for name in engines if name in _BY_HANDLER]
        if chosen is False and excluded:
            raise ValidationError(
                f"{HIVE_ENGINE}=false, a property of the table, excludes {' and '.join(excluded)}",
                hint=f"Leave it out, or set {HIVE_ENGINE}=true",
            )
    needed = {INTEROP.key: ",".join(engines)}
    if set(engines) & set(_BY_HANDLER):
        needed[HIVE_ENGINE.key] = "true"
    return needed


def examine_engines(entry: HiveTable, metadata: TableMetadata, io: FileIO) -> Iterator[Finding]:
    """Check that a table and its entry have what the engines in ``icecomb.interop`` need."""
    if INTEROP.key not in metadata.properties:
        return
    name = entry.full_name
    try:
        engines = INTEROP.of(metadata.properties)
    except ConfigurationError as error:
        yield Finding(
            Severity.PROBLEM,
            _CODE,
            error.message,
            f"{error.hint} {_set(name, INTEROP.key, ','.join(_ALL))}",
        )
        return
    found = [*_missing(entry, metadata, engines), *_too_old(name, metadata, engines)]
    if "hive" in engines:
        found += _unread_times(name, metadata, io)
    yield from found
    if not found:
        said = ", ".join(engines)
        yield Finding(Severity.OK, _CODE, f"the table has what they need: {said}")


def _missing(
    entry: HiveTable, metadata: TableMetadata, engines: tuple[str, ...]
) -> Iterator[Finding]:
    name = entry.full_name
    by_handler = " and ".join(engine for engine in engines if engine in _BY_HANDLER)
    # Without the property, a writer whose catalog is not configured so removes the handler.
    if by_handler and not HIVE_ENGINE.of(metadata.properties):
        yield Finding(
            Severity.PROBLEM,
            _CODE,
            f"{by_handler} cannot read it: the table's property {HIVE_ENGINE} is not true",
            _set(name, HIVE_ENGINE.key, "true"),
        )
    elif by_handler and not is_read_by_handler(entry):
        yield Finding(
            Severity.PROBLEM,
            _CODE,
            f"{by_handler} cannot read it: the entry lacks Iceberg's storage handler or formats",
            shell_command("repair", name),
        )
    if "impala" in engines:
        for key in _OTHER_NAMES:
            said = entry.parameters.get(key, name)
            if said.lower() != name.lower():
                yield Finding(
                    Severity.PROBLEM,
                    _CODE,
                    f"impala takes it for another table: its property {key} is {said!r}",
                    f"ALTER TABLE {_printed(name)} UNSET TBLPROPERTIES ('{key}')",
                )


def _too_old(name: str, metadata: TableMetadata, engines: tuple[str, ...]) -> Iterator[Finding]:
    if old := too_old_engines(engines, metadata.format_version):
        yield Finding(
            Severity.WARNING,
            _CODE,
            f"{old} cannot read it: it is of format version {metadata.format_version}",
            f"use these versions or newer ones: {name} cannot go back, but its rows can be copied "
            "to a table with TBLPROPERTIES ('format-version'='2')",
        )


def _unread_times(name: str, metadata: TableMetadata, io: FileIO) -> Iterator[Finding]:
    try:
        path = _file_with_millis(metadata, io)
    except (IcecombError, OSError) as error:
        yield Finding(
            Severity.PROBLEM,
            _CODE,
            f"it is unknown whether hive reads all of its times: {reason_of(error)}",
            getattr(error, "hint", None),
        )
        return
    if path is not None:
        yield Finding(
            Severity.WARNING,
            _CODE,
            "hive cannot read it with Iceberg's runtime for Hive 3 (1.4.3: «Unknown logical "
            f"type»): Avro files such as {path} hold times as timestamp-millis",
            "use a runtime that knows them (1.11 does), or rewrite the files: "
            + shell_command("maintain", "rewrite-data-files", name, "--option", "rewrite-all=true"),
        )


def _file_with_millis(metadata: TableMetadata, io: FileIO) -> str | None:
    """Return an Avro file with times by Hive; Iceberg's hold microseconds (spec: Avro).

    The files of one commit are alike: one of each is examined, for at most `_EXAMINED` commits.
    """
    from icecomb.format.avro.container_stream import ContainerStream
    from icecomb.format.manifests.manifest import ManifestContent
    from icecomb.format.manifests.manifest_list import read_manifests
    from icecomb.format.manifests.reader import read_each_columns
    from icecomb.format.spec.schema import walk

    fields = walk(metadata.schema().as_struct())
    has_times = any(isinstance(one.field_type, TimestampType | TimestamptzType) for one in fields)
    snapshot = metadata.current_snapshot()
    if snapshot is None or not has_times or metadata.name_mapping() is None:
        return None
    manifests = [m for m in read_manifests(io, snapshot) if m.content is ManifestContent.DATA]
    looked_at: set[int | None] = set()
    for columns in read_each_columns(io, manifests, metadata.spec_by_id):
        names = ("file_format", "snapshot_id", "file_path")
        rows = (columns.column(name).filter(columns.live).to_pylist() for name in names)
        for kind, commit, path in zip(*rows, strict=True):
            if kind.lower() != "avro" or commit in looked_at:
                continue
            looked_at.add(commit)
            with io.open_input(path) as source:
                schema = json.dumps(ContainerStream(source, path).schema)
            if "timestamp-millis" in schema:
                return str(path)
            if len(looked_at) == _EXAMINED:
                return None
    return None


def _set(name: str, key: str, value: str) -> str:
    return f"ALTER TABLE {_printed(name)} SET TBLPROPERTIES ('{key}'='{value}')"


def _printed(name: str) -> str:
    return printed_name(*name.split(".", 1))
