"""Writes: how Spark is to lay out new data files, and their commit."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import (
    CommitStateUnknownError,
    ConfigurationError,
    IcecombError,
    UnsupportedError,
)
from icecomb.format.operation.summary import snapshot_texts
from icecomb.format.partition import PartitionSpec
from icecomb.format.schema import Schema, children, walk
from icecomb.format.snapshot import MAIN_BRANCH
from icecomb.format.sort import NullOrder, SortOrder
from icecomb.format.types import FixedType, ListType, MapType, UUIDType
from icecomb.spark.partitioning import name_path, spark_transform, spark_transforms, transform_parts
from icecomb.spark.planner.audit import Audit, Place, head
from icecomb.spark.planner.catalogs import Catalogs
from icecomb.spark.planner.hadoop_locations import HadoopLocations
from icecomb.spark.planner.predicates import exact_filter
from icecomb.spark.planner.staging import StagedTables, lost
from icecomb.spark.planner.states import TableState, TableStates
from icecomb.spark.planner.table_change import (
    APPEND,
    OVERWRITE,
    OVERWRITE_PARTITIONS,
    REPLACE_FILES,
    check_same_table,
    overwrite,
    overwrite_partitions,
    replace_files,
)
from icecomb.spark.planner.written_files import data_files, metrics_modes
from icecomb.spark.schema import spark_schema

if TYPE_CHECKING:
    from icecomb.catalog.table import Table
    from icecomb.catalog.transaction import Transaction
    from icecomb.format.metadata import TableMetadata
    from icecomb.format.operation.snapshot_producer import SnapshotProducer

_TARGET: Final = "write.target-file-size-bytes"
_DEFAULT_TARGET: Final = 512 * 1024 * 1024
_SUMMARY_OPTION: Final = "snapshot-property."
_WRITER_SETTINGS: Final = {
    "write.parquet.row-group-size-bytes": ("parquet.block.size", "134217728"),
    "write.parquet.page-size-bytes": ("parquet.page.size", "1048576"),
    "write.parquet.page-row-limit": ("parquet.page.row.count.limit", "20000"),
    "write.parquet.dict-size-bytes": ("parquet.dictionary.page.size", "2097152"),
}
_LEVELS: Final = {
    "zstd": "parquet.compression.codec.zstd.level",
    "gzip": "zlib.compress.level",
}
_CODECS: Final = frozenset({"zstd", "gzip", "snappy", "lz4", "lz4_raw", "brotli", "uncompressed"})


class Writes:
    """The methods of the protocol that write."""

    def __init__(self, catalogs: Catalogs, states: TableStates, staged: StagedTables) -> None:
        self._catalogs = catalogs
        self._states = states
        self._staged = staged

    def begin_write(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: begin_write.

        Raises:
            UnsupportedError: An operation, or a file format, that is not there yet.
            ValidationError: The session's settings of write-audit-publish contradict each other.
        """
        reference = params["reference"]
        tables = self._staged if reference.get("staged") else self._states
        state = tables.find(reference)
        metadata, options = state.metadata, _lowered(params.get("options") or {})
        audit = Audit.of(params)
        place = audit.place(metadata, options.get("branch"))
        _check_writable(state, params)
        if params["operation"] == REPLACE_FILES:
            audit.check_read(state)
        schema, spec = metadata.schema(), metadata.spec()
        fanout = _setting(
            options, "fanout-enabled", metadata, "write.spark.fanout.enabled", "false"
        )
        partitioning = spark_transforms(spec, schema)
        ordering = [_ascending(transform) for transform in partitioning]
        sort_order = metadata.sort_order()
        sorted_rows = bool(sort_order.fields)
        hashed = _setting(options, "distribution-mode", metadata, "write.distribution-mode", "hash")
        location = _data_location(metadata)
        modes = metrics_modes(metadata)
        told = HadoopLocations(state.io.properties).of(location["root"])
        return {
            "write": {
                "catalog": state.catalog,
                "identifier": list(state.identifier),
                "uuid": str(metadata.table_uuid),
                "schema_id": metadata.current_schema_id,
                "spec_id": spec.spec_id,
                "sort_order_id": sort_order.order_id if sorted_rows else 0,
                "operation": params["operation"],
                "snapshot_id": head(metadata, place.branch),
                "branch": place.branch,
                "wap_id": place.wap_id,
                "filters": params.get("filters", []),
                "command": params.get("command"),
                "metrics": modes,
                "root": {"named": location["root"], "told": told},
                "summary": snapshot_texts(
                    {
                        key[len(_SUMMARY_OPTION) :]: value
                        for key, value in (params.get("options") or {}).items()
                        if key.lower().startswith(_SUMMARY_OPTION)
                    }
                ),
            },
            "schema": spark_schema(schema),
            "spec": {"spec_id": spec.spec_id, "fields": _spec_json(spec, schema)},
            "location": {**location, "root": told},
            "operation_id": str(uuid.uuid4()),
            "distribution": [] if hashed.lower() == "none" else partitioning,
            "ordering": (
                [*ordering, *_sort_fields(sort_order, schema)]
                if sorted_rows or fanout.lower() != "true"
                else []
            ),
            "fanout": fanout.lower() == "true" and not sorted_rows,
            "target_file_bytes": _target_bytes(options, metadata),
            "writer": _writer_settings(options, metadata),
            "metrics": modes,
            "footer_metadata": {"iceberg.schema": _schema_text(schema)},
        }

    def commit_write(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: commit_write. Nothing is committed when nothing changes.

        Raises:
            CommitFailedError: Certainly not committed.
            CommitStateUnknownError: It cannot be told; the files must stay.
        """
        write = params["write"]
        if not params["files"] and write["operation"] == APPEND:
            return {}
        catalog = self._catalogs[write["catalog"]]
        table = catalog.load_table(tuple(write["identifier"]))
        change = self._change(table, params)
        if change is None:
            return {}
        change.written_with = table.metadata.schema_by_id(write["schema_id"])
        with _only_proven_failures(table.identifier):
            table.commit(change)
        return {}

    def abort_write(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: abort_write."""
        from icecomb.format.file_io import FileIO

        write = params["write"]
        FileIO(dict(self._catalogs[write["catalog"]].properties)).delete(params["files"])
        return {}

    def commit_staged(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: commit_staged. The table appears, or becomes another one, with its rows.

        Raises:
            TableAlreadyExistsError: Others took the name meanwhile.
            CommitFailedError: Certainly not committed.
            CommitStateUnknownError: It cannot be told; the files must stay.
        """
        reference = params["reference"]
        transaction = self._staged.take(reference)
        if transaction is None:
            raise lost(reference)
        try:
            if params.get("write"):
                self._write_staged(transaction, params)
            with _only_proven_failures(reference["identifier"]):
                transaction.commit_transaction()
        finally:
            transaction.abandon()
        return {}

    def abort_staged(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: abort_staged."""
        from icecomb.format.file_io import FileIO

        reference = params["reference"]
        FileIO(dict(self._catalogs[reference["catalog"]].properties)).delete(params["files"])
        transaction = self._staged.take(reference)
        if transaction is not None:
            transaction.abandon()
        return {}

    def _write_staged(self, transaction: Transaction, params: Mapping[str, Any]) -> None:
        write, summary = params["write"], self._summary(params)
        place = Place.of(write)
        if place.branch != MAIN_BRANCH and place.branch in transaction.metadata.refs:
            # REPLACE TABLE leaves other branches as they are, its rows replace this one's
            transaction.delete(snapshot_properties=summary, branch=place.branch)
        if params["files"]:
            files = data_files(transaction.metadata, write, params["files"])
            transaction.append_data_files(files, summary, place.branch, stage_only=place.is_staged)

    def _change(self, table: Table, params: Mapping[str, Any]) -> SnapshotProducer | None:
        """What the write does to the table; None when it changes nothing.

        Raises:
            CommitFailedError: The table is another one than the statement began with.
        """
        from icecomb.format.operation.append import FastAppend

        write = params["write"]
        operation = write["operation"]
        names_columns = operation in {OVERWRITE, REPLACE_FILES}
        check_same_table(table, write["uuid"], write["schema_id"] if names_columns else None)
        files = data_files(table.metadata, write, params["files"])
        summary = self._summary(params)
        if operation == OVERWRITE:
            return overwrite(table, write, files, summary)
        if operation == OVERWRITE_PARTITIONS:
            return overwrite_partitions(table, write, files, summary)
        if operation == REPLACE_FILES:
            state = self._states.find(params["replaced"]["reference"])
            return replace_files(table, state, write, params["replaced"], files, summary)
        place = Place.of(write)
        append = FastAppend(table.io, summary, place.branch, stage_only=place.is_staged)
        for file in files:
            append.append_data_file(file)
        return append

    def _summary(self, params: Mapping[str, Any]) -> dict[str, str]:
        write = params["write"]
        return {
            **self._catalogs.engine(write["catalog"]),
            **params.get("properties", {}),
            **write["summary"],
            **Place.of(write).summary,
        }


@contextmanager
def _only_proven_failures(identifier: Iterable[str]) -> Iterator[None]:
    """The bridge deletes the files of a commit that failed: a surprise is no proof that it did."""
    try:
        yield
    except IcecombError:
        raise
    except Exception as error:
        name = ".".join(identifier)
        raise CommitStateUnknownError(
            f"the commit to {name} ended in {type(error).__name__}: {error}",
            hint="look whether the rows are there before you write them again; no file was deleted",
            table=name,
        ) from error


def _check_writable(state: TableState, params: Mapping[str, Any]) -> None:
    if state.time_travel:
        raise UnsupportedError(
            f"a version of table {state.name} cannot be written to",
            hint="write to the table itself, without VERSION or TIMESTAMP AS OF",
        )
    if params["operation"] == OVERWRITE:
        exact_filter(params["filters"], state.schema, case_sensitive=True)
    options = _lowered(params.get("options") or {})
    file_format = _setting(
        options, "write-format", state.metadata, "write.format.default", "parquet"
    )
    if file_format.lower() != "parquet":
        raise UnsupportedError(
            f"table {state.name} is to be written as {file_format}; Spark writes Parquet here",
            hint="set write.format.default to parquet",
        )
    _check_elements(state)
    if "branch" in options:
        raise UnsupportedError(
            "writing to a branch from Spark is not there yet",
            hint="SET spark.wap.branch, for a table with the property write.wap.enabled=true",
        )
    if "validate-from-snapshot-id" in options:
        raise UnsupportedError(
            "the write option validate-from-snapshot-id is not there yet",
            hint="a write is checked against all that happened since its statement began",
        )
    # the rows of all other partitions would be lost
    if params["operation"] == OVERWRITE and options.get("overwrite-mode", "").lower() == "dynamic":
        raise UnsupportedError(
            "the write option overwrite-mode=dynamic is not there yet",
            hint="use writeTo(…).overwritePartitions(), or set "
            "spark.sql.sources.partitionOverwriteMode to dynamic",
        )


def _check_elements(state: TableState) -> None:
    """Spark knows such elements only as binary, and would write them with no fixed length."""
    schema = state.metadata.schema()
    for field in walk(schema.as_struct()):
        if not isinstance(field.field_type, ListType | MapType):
            continue
        for inner in children(field.field_type):
            if isinstance(inner.field_type, UUIDType | FixedType):
                name = schema.find_column_name(inner.field_id)
                raise UnsupportedError(
                    f"table {state.name}: Spark cannot write {name}, a {inner.field_type} "
                    "directly in a list or map",
                    hint="append to it from Python, or put the value into a struct",
                )


def _spec_json(spec: PartitionSpec, schema: Schema) -> list[dict[str, Any]]:
    described = []
    for field in spec.fields:
        name, number = transform_parts(field.transform)
        # the source of a void field may have been dropped
        source = name_path(schema, field.source_id) if name != "void" else []
        described.append(
            {"name": field.name, "transform": name, "parameter": number, "source": source}
        )
    return described


def _sort_fields(order: SortOrder, schema: Schema) -> list[dict[str, Any]]:
    return [
        {
            "transform": spark_transform(field.transform, name_path(schema, field.source_id)),
            "direction": field.direction.value,
            "nulls": "last" if field.null_order is NullOrder.NULLS_LAST else "first",
        }
        for field in order.fields
    ]


def _ascending(transform: dict[str, Any]) -> dict[str, Any]:
    return {"transform": transform, "direction": "asc", "nulls": "first"}


def _data_location(metadata: TableMetadata) -> dict[str, Any]:
    """Where the tasks put new files, each by its own name."""
    from icecomb.format.rows.location_provider import (
        ObjectStoreLocationProvider,
        load_location_provider,
    )

    provider = load_location_provider(metadata.location, metadata.properties)
    if isinstance(provider, ObjectStoreLocationProvider):
        return {
            "root": provider.root,
            "hashed": True,
            "partitioned_paths": provider.partitioned_paths,
            "context": provider.context,
        }
    return {"root": provider.root, "hashed": False, "partitioned_paths": True, "context": None}


def _target_bytes(options: Mapping[str, str], metadata: TableMetadata) -> int:
    text = _setting(options, "target-file-size-bytes", metadata, _TARGET, str(_DEFAULT_TARGET))
    if not text.isdecimal() or int(text) < 1:
        raise ConfigurationError(
            f"{_TARGET} must be a positive whole number, not {text!r}",
            hint="give it in bytes, as 536870912",
        )
    return int(text)


def _writer_settings(options: Mapping[str, str], metadata: TableMetadata) -> dict[str, str]:
    codec = _setting(
        options, "compression-codec", metadata, "write.parquet.compression-codec", "zstd"
    ).lower()
    if codec not in _CODECS:
        raise ConfigurationError(
            f"write.parquet.compression-codec {codec!r} is unknown",
            hint=f"take one of {', '.join(sorted(_CODECS))}",
        )
    settings = {"compression": codec}
    level = _setting(options, "compression-level", metadata, "write.parquet.compression-level", "")
    if level and codec in _LEVELS:
        settings[_LEVELS[codec]] = level
    for name, (hadoop_name, default) in _WRITER_SETTINGS.items():
        settings[hadoop_name] = metadata.properties.get(name, default)
    return settings


def _setting(
    options: Mapping[str, str], option: str, metadata: TableMetadata, name: str, default: str
) -> str:
    """A write option before the table property before the default."""
    return options.get(option) or metadata.properties.get(name) or default


def _lowered(options: Mapping[str, str]) -> dict[str, str]:
    return {key.lower(): value for key, value in options.items()}


def _schema_text(schema: Schema) -> str:
    import json

    return json.dumps(schema.to_json(), separators=(",", ":"))
