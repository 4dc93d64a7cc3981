"""Copies of tables by the file lists of rewrite_table_path, and what is in them."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

ON_READ = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}


def frame(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "k": [str(i % 3) for i in ids]})


def path_of(location: str) -> Path:
    return Path(location.removeprefix("file:").replace("//", "/"))


def made(lake, version=2, **properties):
    """A table with deletes by position, a branch and a tag."""
    given = {"format-version": str(version), **(ON_READ if version > 1 else {}), **properties}
    table = lake.create_table("db.t", frame(1).schema, properties=given)
    table.append(frame(*range(10)))
    table.append(frame(*range(10, 20)))
    with table.manage_snapshots() as change:
        change.create_tag(table.current_snapshot().snapshot_id, "old")
        change.create_branch(table.current_snapshot().snapshot_id, "side")
    table.delete("id in (3, 13)")
    table.delete("id = 14")
    table.append(frame(100), branch="side")
    return lake.load_table("db.t")


def follow(file_list: str, *, again: bool = False) -> list[tuple[str, str]]:
    """Copy the files of a list, in its order; a file that is there must not be in it, or be the same."""
    with path_of(file_list).open(encoding="utf-8", newline="") as lines:
        pairs = [(source, target) for source, target in csv.reader(lines)]
    for source, target in pairs:
        if path_of(target).exists():
            assert again, target
            assert path_of(target).read_bytes() == path_of(source).read_bytes()
        path_of(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path_of(source), path_of(target))
    return pairs


def ids(table: Any, ref: str | None = None, **scan: Any) -> list[int]:
    """The rows of a table, of a snapshot of it, or of a branch or tag."""
    chosen = table.scan(**scan)
    found: list[int] = (chosen.use_ref(ref) if ref else chosen).to_arrow()["id"].to_pylist()
    return sorted(found)


def content_of(folder: Path) -> dict[str, bytes]:
    """The bytes of every file in a folder, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """What each file of a table says of paths: metadata, and the columns of delete files."""
    for path in sorted(folder.rglob("*")):
        name = path.name
        if name.endswith(".metadata.json"):
            data = path.read_bytes()
            yield name, gzip.decompress(data).decode() if ".gz." in name else data.decode()
        elif name.endswith(".avro"):
            with path.open("rb") as stream:
                yield name, repr(list(fastavro.reader(stream)))
        elif name.endswith("deletes.parquet"):
            yield name, repr(pq.read_table(path).to_pylist())
        elif name.endswith("deletes.orc"):
            yield name, repr(orc.ORCFile(path).read().to_pylist())
        elif name.endswith(".puffin"):
            yield name, path.read_bytes().decode("latin-1")


def stated_lengths(metadata: Path) -> Iterator[tuple[Path, int]]:
    """The lengths that manifest lists and live entries of manifests state, by file."""
    for snapshot in json.loads(metadata.read_text()).get("snapshots", ()):
        for listed in records(path_of(snapshot["manifest-list"])):
            manifest = path_of(listed["manifest_path"])
            yield manifest, listed["manifest_length"]
            for entry in records(manifest):
                if entry["status"] != 2:
                    file = entry["data_file"]
                    yield path_of(file["file_path"]), file["file_size_in_bytes"]


def records(path: Path) -> list[Any]:
    with path.open("rb") as stream:
        return list(fastavro.reader(stream))
