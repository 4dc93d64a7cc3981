"""Metadata of a table changed in place, as another writer would have written it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro

from icecomb.catalog import load_catalog
from icecomb.catalog.table.table import Table
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.append import FastAppend

Record = dict[str, Any]
NO_CACHE: Mapping[str, str] = {"io.manifest.cache-enabled": "false"}


UNKNOWN: Mapping[str, None] = dict.fromkeys(
    ("value_counts", "null_value_counts", "nan_value_counts")
)
"""What is said of a data file whose values nobody counted."""


def nothing(_: Record) -> None:
    """Leave a record as it is."""


def tell_otherwise(
    table: Table,
    file: Callable[[Record], None] = nothing,
    manifest: Callable[[Record], None] = nothing,
) -> None:
    """Change what the current snapshot's metadata says.

    Args:
        table: A table in local files.
        file: Changes the `data_file` of an entry of a manifest; bounds and counts are mappings.
        manifest: Changes a manifest's record in the list.
    """
    listed = table.current_snapshot().manifest_list

    def entry(record: Record) -> Record:
        described = record["data_file"]
        for name in _MAPS & described.keys():
            pairs = described[name]
            described[name] = None if pairs is None else {p["key"]: p["value"] for p in pairs}
        file(described)
        for name in _MAPS & described.keys():
            pairs = described[name]
            if pairs is not None:
                described[name] = [{"key": key, "value": value} for key, value in pairs.items()]
        return record

    def each(record: Record) -> Record:
        if file is not nothing:
            record["manifest_length"] = _rewrite(record["manifest_path"], entry)
        manifest(record)
        return record

    _rewrite(listed, each)


def told_otherwise(
    table: Table,
    file: Callable[[Record], None] = nothing,
    manifest: Callable[[Record], None] = nothing,
) -> Table:
    """Change the metadata of a table of a file system, and load it again; see `tell_otherwise`."""
    tell_otherwise(table, file, manifest)
    return again(table)


def with_its_file(
    catalog,
    right: Table,
    name: str | tuple[str, ...],
    changes: Callable[[DataFile], Mapping[str, Any]],
    **properties: str,
) -> Table:
    """Make a table like another one, with its only data file, of which the manifest says something else.

    Args:
        catalog: Where both tables are.
        right: A table of one data file.
        name: The new table.
        changes: What the manifest says otherwise, by fields of `DataFile`.
        properties: More properties than those of `right`.
    """
    [manifest] = read_manifests(right.io, right.current_snapshot())
    [entry] = manifest.fetch_manifest_entry(right.io)
    made = catalog.create_table(name, right.schema(), properties={**right.properties, **properties})
    wrong = replace(entry.data_file, **changes(entry.data_file))
    made.commit(FastAppend(made.io).append_data_file(wrong))
    return catalog.load_table(name)


def half_its_size(file: DataFile) -> Mapping[str, Any]:
    """Half the size of a data file, and nothing of its parts; for `with_its_file`."""
    return {"file_size_in_bytes": file.file_size_in_bytes // 2, "split_offsets": None}


def again(table: Table) -> Table:
    """Load a table by a catalog that knows nothing of it yet."""
    location = Path(table.location().removeprefix("file:"))
    warehouse, _, namespace, name = (
        str(location.parent.parent),
        None,
        location.parent.name,
        location.name,
    )
    catalog = load_catalog("fresh", type="hadoop", warehouse=warehouse, **NO_CACHE)
    return catalog.load_table(f"{namespace}.{name}")


_MAPS = {"value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"}


def _rewrite(location: str, change: Callable[[Record], Record]) -> int:
    path = Path(location.removeprefix("file:"))
    with path.open("rb") as stream:
        reader = fastavro.reader(stream)
        metadata, records = reader.metadata, list(reader)
    schema = json.loads(metadata["avro.schema"])
    # what only icecomb says of its own files is not in those of others
    kept = {k: v for k, v in metadata.items() if not k.startswith(("avro.", "icecomb."))}
    with path.open("wb") as stream:
        fastavro.writer(stream, schema, map(change, records), metadata=kept)
    return path.stat().st_size
