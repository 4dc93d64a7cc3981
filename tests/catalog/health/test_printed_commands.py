"""Every command that is printed runs as it is printed, and what it mends is gone after it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import Table, cli
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.format.operation.overwrite import DeleteFiles
from icecomb.format.operation.row_delta import RowDelta
from tests.catalog.health.made_table import SCHEMA, lake_in, repeated_snapshots
from tests.catalog.health.test_metadata_finding import changed

DAY_MS = 86_400_000
NAME = "it's a $(table);\n\x1b[2J"


def rows(*days: str) -> pa.Table:
    return pa.table({"id": range(len(days)), "day": days}, schema=SCHEMA)


def made(folder: Path, **properties: str) -> Table:
    properties = {"commit.manifest-merge.enabled": "false", **properties}
    return lake_in(folder).create_table(("db", NAME), SCHEMA, properties=properties)


def small_files(folder: Path) -> Table:
    table = made(folder)
    for _ in range(5):
        table.append(rows("a"))
    return table


def deleted(table: Table, *files: DataFile) -> Table:
    delta = RowDelta(table.io)
    for file in files:
        delta.add_deletes(file)
    return table.commit(delta)


def delete_file(table: Table, name: str, data: pa.Table, **more: Any) -> DataFile:
    path = f"{table.location()}/data/{name}.parquet"
    pq.write_table(data, path.removeprefix("file://"))
    size = table.io.size(path)
    return DataFile(file_path=path, record_count=len(data), file_size_in_bytes=size, **more)


def position_deletes(table: Table, name: str, positions: list[int]) -> DataFile:
    (path,) = {task.file.file_path for task in table.scan().plan_files()}
    fields = [("file_path", pa.string(), 2147483546), ("pos", pa.int64(), 2147483545)]
    schema = pa.schema(
        [pa.field(n, kind, False, {"PARQUET:field_id": str(i)}) for n, kind, i in fields]
    )
    data = pa.table([[path] * len(positions), positions], schema=schema)
    bound = {2147483546: path.encode()}
    content = DataFileContent.POSITION_DELETES
    return delete_file(table, name, data, content=content, lower_bounds=bound, upper_bounds=bound)


def delete_heavy(folder: Path) -> Table:
    table = made(folder)
    table.append(rows("a", "b", "c", "d"))
    return deleted(table, position_deletes(table, "places", [1]))


def many_delete_files(folder: Path) -> Table:
    table = made(folder)
    table.append(rows(*["a"] * 100))
    return deleted(table, *(position_deletes(table, f"p{n}", [n]) for n in range(5)))


def equality_deletes(folder: Path) -> Table:
    table = made(folder)
    table.append(rows("a", "b", "c"))
    field = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    keys = pa.table([[1]], schema=pa.schema([field]))
    content = DataFileContent.EQUALITY_DELETES
    return deleted(table, delete_file(table, "equal", keys, content=content, equality_ids=(1,)))


def dangling_deletes(folder: Path) -> Table:
    table = delete_heavy(folder)
    (path,) = {task.file.file_path for task in table.scan().plan_files()}
    table.append(rows("e"))
    return table.commit(DeleteFiles(table.io).delete_data_file(path))


def unsorted(folder: Path) -> Table:
    table = small_files(folder)
    with table.update_sort_order() as order:
        order.asc("id")
    return table


def old_spec(folder: Path) -> Table:
    table = made(folder)
    table.append(rows("b", "a"))
    with table.update_spec() as spec:
        spec.add_identity("day")
    return table


def many_manifests(folder: Path) -> Table:
    table = made(folder, **{"commit.manifest.min-count-to-merge": "3"})
    for day in "abc":
        table.append(rows(day))
    return table


def snapshot_bloat(folder: Path, *, days: int = 9, count: int = 100) -> Table:
    table = made(folder)
    table.append(rows("a"))
    begun = int(time.time() * 1000) - days * DAY_MS
    snapshots = repeated_snapshots(table, [begun + number for number in range(count + 1)])
    changed(
        table,
        snapshots=snapshots,
        **{
            "current-snapshot-id": len(snapshots),
            "last-sequence-number": len(snapshots),
            "refs": {"main": {"type": "branch", "snapshot-id": len(snapshots)}},
            "snapshot-log": [],
        },
    )
    return table.refresh()


def young_snapshots(folder: Path) -> Table:
    return snapshot_bloat(folder, days=2, count=1000)


def metadata_bloat(folder: Path) -> Table:
    """Nine schemas of a megabyte that nothing needs any more."""
    table = made(folder)
    table.append(rows("a"))
    raw = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    (schema,) = raw["schemas"]
    first, *others = schema["fields"]
    unused = [
        schema | {"schema-id": number, "fields": [first | {"doc": "x" * (1 << 20)}, *others]}
        for number in range(1, 10)
    ]
    changed(table, schemas=[schema, *unused])
    return table.refresh()


def files_without_ids(folder: Path) -> Table:
    table = made(folder)
    path = folder / "000000_0"
    pq.write_table(rows("a"), path)
    table.add_files([str(path)])
    return table


def orphans(folder: Path) -> Table:
    table = made(folder)
    table.append(rows("a"))
    left = Path(table.location().removeprefix("file://")) / "data" / "left.parquet"
    left.write_bytes(b"x")
    os.utime(left, (time.time() - 4 * 86_400,) * 2)
    return table


CASES: dict[str, Callable[[Path], Table]] = {
    "small-files": small_files,
    "delete-heavy": delete_heavy,
    "delete-heavy by files": many_delete_files,
    "equality-deletes": equality_deletes,
    "dangling-deletes": dangling_deletes,
    "unsorted": unsorted,
    "old-spec": old_spec,
    "many-manifests": many_manifests,
    "snapshot-bloat": snapshot_bloat,
    "snapshot-bloat of young ones": young_snapshots,
    "metadata-bloat": metadata_bloat,
    "hive-files-without-ids": files_without_ids,
    "orphans": orphans,
}


@pytest.fixture
def health(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Any:
    monkeypatch.setenv("ICECOMB_CATALOG__LAKE__TYPE", "hadoop")
    monkeypatch.setenv("ICECOMB_CATALOG__LAKE__WAREHOUSE", str(tmp_path / "the lake"))

    def found() -> dict[str, Any]:
        capfd.readouterr()
        command = ["--catalog", "lake", "health", "--orphans", "--output", "json", "db.*"]
        assert cli.main(command) in {0, 3}
        (one,) = json.loads(capfd.readouterr().out)
        assert one["table"] == f"db.{NAME}"
        return {each["code"]: each for each in one["findings"]}

    return found


def words_of(line: str) -> list[str]:
    """The words of a line for bash; shlex knows all quotes but $'...'."""
    script = 'f() { printf "%s\\0" "$@"; }; f ' + line
    done = subprocess.run(["/bin/bash", "-c", script], capture_output=True, check=True)
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize("case", CASES)
def test_a_printed_command_runs_as_it_is_printed_and_mends_what_was_found(
    tmp_path: Path, health: Any, case: str
) -> None:
    code = case.partition(" ")[0]
    table = CASES[case](tmp_path / "the lake")
    wanted = sorted(table.scan().to_arrow().to_pylist(), key=str)
    found = health()
    assert code in found
    missing = {each["code"] for each in found.values() if each["command"] is None}
    rewrites = hasattr(table.maintenance, "rewrite_data_files")
    assert missing == (set() if rewrites else missing & REWRITTEN)
    for each in found.values():
        if each["command"] is None:
            continue
        words = words_of(each["command"])
        assert words[0] == "icecomb"
        assert cli.main(words[1:]) == 0, each["command"]
        if words[3:5] in (["maintain", "expire-snapshots"], ["maintain", "remove-orphan-files"]):
            assert each["code"] in health(), "without --yes it only says what it would do"
            assert cli.main([*words[1:], "--yes"]) == 0
    rest = health()
    assert (code in rest) == (found[code]["command"] is None)
    assert sorted(table.refresh().scan().to_arrow().to_pylist(), key=str) == wanted


REWRITTEN = {
    *("small-files", "delete-heavy", "equality-deletes", "dangling-deletes", "unsorted"),
    *("old-spec", "hive-files-without-ids"),
}
"""What only the rewriting of data files mends."""
