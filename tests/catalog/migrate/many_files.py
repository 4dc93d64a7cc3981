"""A Hive table of any number of partitions and files, which nothing has to be made of, is planned and written.

    python tests/catalog/migrate/many_files.py FOLDER PARTITIONS FILES_OF_EACH

Folders and footers are made up as they are asked for; all that a migration does with them is real. Prints a line
of JSON: what was planned and written, the seconds of each step, and the most memory that the process had.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HivePartition,
    HiveTable,
    StorageDescriptor,
)
from icecomb.catalog.migrate.applying.migration import file_mapping
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.planning.survey import plan_source
from icecomb.catalog.migrate.source.footer import Footer, FooterReader
from icecomb.catalog.migrate.source.source_files import folder_listings
from icecomb.catalog.report.progress import SILENT
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.operation.append import FastAppend
from icecomb.format.spec.change.update import update_table_metadata
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import FileStatus

MADE_UP = "file:/made-up/t"
STORAGE = StorageDescriptor(
    columns=(FieldSchema("id", "bigint"), FieldSchema("text", "string")),
    location=MADE_UP,
    input_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
)


class MadeUpFiles(FileIO):
    """Each folder of the table has so many files; all others are real."""

    def __init__(self, files: int) -> None:
        super().__init__({})
        self._files = files
        self.read_footers = 0

    def list(self, prefix: str) -> Iterator[FileStatus]:
        if prefix.startswith(f"{MADE_UP}/k="):
            for number in range(self._files):
                path = f"{prefix}/part-{number:05}-f7c1.snappy.parquet"
                yield FileStatus(path, 1000 + number, 1, 1 + number)
        else:
            yield from super().list(prefix)


def partitions(count: int) -> Iterator[HivePartition]:
    for number in range(count):
        storage = StorageDescriptor(
            columns=STORAGE.columns,
            location=f"{MADE_UP}/k={number}",
            input_format=STORAGE.input_format,
        )
        yield HivePartition("made", "t", (str(number),), storage=storage)


def footer(io: MadeUpFiles, spec: Any, status: FileStatus, partition: tuple[Any, ...]) -> Footer:
    io.read_footers += 1
    bound = status.size.to_bytes(8, "little")
    file = DataFile(
        file_path=status.location,
        partition=partition,
        record_count=10,
        file_size_in_bytes=status.size,
        column_sizes={1: 100, 2: 200},
        value_counts={1: 10, 2: 10},
        null_value_counts={1: 0, 2: 0},
        nan_value_counts={},
        lower_bounds={1: bound, 2: b"aaaaaaaaaaaaaaaa"},
        upper_bounds={1: bound, 2: b"zzzzzzzzzzzzzzzz"},
        split_offsets=(4,),
        spec_id=spec.spec_id,
    )
    return Footer(file, {1: "id", 2: "TEXT"})


def memory_mb() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def main() -> None:
    folder, count, files = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    table = HiveTable(
        "made", "t", storage=STORAGE, partition_keys=(FieldSchema("k", "int"),), parameters={}
    )
    io = MadeUpFiles(files)

    def read(
        _: FooterReader,
        status: FileStatus,
        spec: Any,
        partition: tuple[Any, ...],
        *,
        positional: bool,
    ) -> Footer:
        return footer(io, spec, status, partition)

    FooterReader.read = read  # type: ignore[method-assign]
    steps: dict[str, float] = {}
    begun = memory_mb()

    def timed(name: str, work: Any) -> Any:
        started = time.monotonic()
        answer = work()
        steps[name] = round(time.monotonic() - started, 1)
        steps[f"{name} MB"] = round(memory_mb())
        return answer

    plan = timed("plan", lambda: plan_source(io, table, partitions(count), Choices(), SILENT))
    assert plan.folder_states is not None
    same = timed(
        "unchanged check",
        lambda: plan.folder_states.match(folder_listings(io, plan.folder_states.folders, SILENT)),
    )
    mapping, last = file_mapping(plan)
    base = plan.definition({}, mapping, last).metadata(folder.as_uri())
    append = FastAppend(io)
    append.append_encoded_files(plan.encoded)
    updates = timed("manifests", lambda: append.apply(base).updates)
    summary = update_table_metadata(base, updates).current_snapshot().summary  # type: ignore[union-attr]
    print(
        json.dumps(
            {
                "partitions": plan.partitions,
                "files": len(plan.files),
                "rows": plan.rows,
                "verdict": plan.verdict,
                "same": same,
                "summary": summary,
                "footers": io.read_footers,
                "steps": steps,
                "memory_mb": round(memory_mb()),
                "begun_mb": round(begun),
            }
        )
    )


if __name__ == "__main__":
    main()
