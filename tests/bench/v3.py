"""Format version 3 beside version 2 and beside no deletes, on the same rows.

    python -m tests.bench.v3 --work build/bench/v3

`read`: one of a hundred rows is deleted, spread over all files. `runs`: half of the rows are, in
runs. `lineage`: reading with and without `_row_id`. `delete`: one of a hundred rows, time and bytes.
`hundred`: a hundred deletes of one of a thousand rows; the first and the last, and reading after each.
`planning`: a hundred thousand files, of metadata alone, with and without a vector for each.
`writes`: an append of two million rows, and an update of one in ten by copy-on-write.
`upgraded`: the first append after the upgrade of a table of ten thousand manifests.
"""

from __future__ import annotations

import argparse
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from icecomb.catalog import open_table
from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.operation.row_delta import RowDelta
from tests.bench.big_table import build
from tests.bench.measure import (
    Figures,
    clocked,
    expect,
    in_turn,
    memory_mb,
    parser,
    print_runs,
    report,
    run_child,
)
from tests.bench.peer_icecomb import append, append_files, catalog, create
from tests.bench.rows import arrow_rows

CASES = "read,runs,lineage,delete,hundred,planning,writes,upgraded"
FILE_ROWS = 2_000_000
COMMITS = 100
EACH = 1000
MANIFESTS = 10_000
TABLES = {"v3": "3", "v2": "2", "none": "2"}
HALF = "l < 549755813888"


def make(folder: Path, rows: int) -> None:
    """The tables, in files of two million rows, sorted by `l` within each."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    each = min(FILE_ROWS, rows)
    for name, version in TABLES.items():
        table = create(catalog(str(folder)), name, arrow_rows(1).schema)
        changed = {"write.delete.mode": "merge-on-read", "format-version": version}
        table.transaction().set_properties(changed).commit_transaction()
        for start in range(0, rows, each):
            append(table, arrow_rows(each, start=start).sort_by("l"))


def make_planned(folder: Path) -> None:
    """Tables of data files that do not exist, a thousand a commit; and of as many vectors."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("v3", "none"):
        table = create(catalog(str(folder)), name, arrow_rows(1).schema, partitioned_by="i")
        changed = {"format-version": "3", "commit.manifest-merge.enabled": "false"}
        table.transaction().set_properties(changed).commit_transaction()
        append(table, arrow_rows(1))
        [manifest] = read_manifests(table.io, table.current_snapshot())
        [first] = [entry.data_file for entry in read_manifest(table.io, manifest)]
        table.delete()
        for commit in range(COMMITS):
            files = [
                replace(first, file_path=f"{first.file_path}/{at}", partition=(commit,))
                for at in range(commit * EACH, (commit + 1) * EACH)
            ]
            change = table.new_fast_append()
            for file in files:
                change.append_data_file(replace(file, first_row_id=None))
            table.commit(change)
            if name == "v3":
                table.commit(_with_vectors(table, files))


def _with_vectors(table: Any, files: list[DataFile]) -> RowDelta:
    change = RowDelta(table.io)
    for at, file in enumerate(files):
        vector = DataFile(
            content=DataFileContent.POSITION_DELETES,
            file_path=f"{files[0].file_path}.puffin",
            file_format=FileFormat.PUFFIN,
            partition=file.partition,
            record_count=1,
            file_size_in_bytes=4 + EACH * 46,
            referenced_data_file=file.file_path,
            content_offset=4 + at * 46,
            content_size_in_bytes=46,
        )
        change.add_deletes(vector)
    return change


def make_old(folder: Path) -> None:
    """A table of version 2 whose manifests are one, listed ten thousand times."""
    shutil.rmtree(folder, ignore_errors=True)
    build(str(folder), 10, 0, 0, MANIFESTS)
    (folder / "metadata" / "version-hint.text").write_text("1")


def upgraded(arguments: argparse.Namespace, name: str) -> None:
    """Append a file, in version 3 after an upgrade."""
    folder = Path(arguments.work) / name
    make_old(folder)
    table = open_table(str(folder))
    if name == "v3":
        table.transaction().upgrade_table_version(3).commit_transaction()
    file = {"file_path": f"{folder}/new", "partition": (1, 1), "record_count": 1}
    added = [{**file, "file_size_in_bytes": 1}]
    _, append_s, append_cpu_s = clocked(lambda: append_files(table, added))
    report(append_s=append_s, append_cpu_s=append_cpu_s, peak_mb=memory_mb())


def writes(arguments: argparse.Namespace, name: str) -> None:
    """Append to a new table, and update it."""
    rows = arrow_rows(FILE_ROWS).sort_by("l")
    source = rows.filter(pc.less(rows["i"], 100_000)).select(["id", "d"])
    folder = Path(arguments.work) / name
    shutil.rmtree(folder, ignore_errors=True)
    table = create(catalog(str(folder)), "t", rows.schema)
    table.transaction().set_properties({"format-version": TABLES[name]}).commit_transaction()
    _, append_s, append_cpu_s = clocked(lambda: append(table, rows))
    merge = table.merge(source, on="t.id = s.id").when_matched_update({"d": "s.d"})
    _, update_s, update_cpu_s = clocked(merge.execute)
    report(
        append_s=append_s,
        append_cpu_s=append_cpu_s,
        update_s=update_s,
        update_cpu_s=update_cpu_s,
        peak_mb=memory_mb(),
    )


def measure(arguments: argparse.Namespace, name: str, case: str) -> None:
    """One process."""
    if case in OWN:
        OWN[case](arguments, name)
        return
    table = catalog(arguments.work).load_table(f"db.{name}")
    if case == "delete":
        before = table.current_snapshot().snapshot_id
        _, delete_s, delete_cpu_s = clocked(lambda: table.delete("i < 10000"))
        written = _delete_bytes(table)
        table.manage_snapshots().rollback_to_snapshot(before).commit()
        report(delete_s=delete_s, delete_cpu_s=delete_cpu_s, written_mb=written / 1e6)
    elif case == "hundred":
        spans = [f"i >= {n * 1000} and i < {(n + 1) * 1000}" for n in range(100)]
        figures: dict[str, Any] = {}
        for at, span in enumerate(spans):
            _, _, cpu_s = clocked(lambda span=span: table.delete(span))
            if at in {0, 99}:
                order = "first" if at == 0 else "last"
                figures[f"{order}_delete_cpu_s"] = cpu_s
                _, _, figures[f"{order}_read_cpu_s"] = clocked(lambda: _read(table))
        report(**figures, peak_mb=memory_mb())
    elif case == "planning":
        planned = lambda: sum(bool(task.file.file_path) for task in table.scan().plan_files())  # noqa: E731
        files, plan_s, plan_cpu_s = clocked(planned)
        report(files=files, plan_s=plan_s, plan_cpu_s=plan_cpu_s, peak_mb=memory_mb())
    else:
        columns = ("*", "_row_id") if name == "v3" and case == "lineage" else ("*",)
        rows, read_s, read_cpu_s = clocked(lambda: _read(table, columns))
        report(rows=rows, read_s=read_s, read_cpu_s=read_cpu_s, peak_mb=memory_mb())


def _read(table: Any, columns: tuple[str, ...] = ("*",)) -> int:
    found = table.scan(selected_fields=columns).to_arrow_batches()
    return sum(batch.num_rows for batch in found)


def _delete_bytes(table: Any) -> int:
    files = {d.identity: d for t in table.scan().plan_files() for d in t.delete_files}
    return sum(d.content_length for d in files.values())


def _case(arguments: argparse.Namespace, case: str) -> None:
    work = Path(arguments.work)
    if case == "planning":
        make_planned(work)
    elif case in OWN:
        work.mkdir(parents=True, exist_ok=True)
    else:
        make(work, arguments.rows)
    deleted = {"read": "i < 10000", "runs": HALF}.get(case)
    if deleted:
        counts = {name: _delete(arguments.work, name, deleted) for name in ("v2", "v3")}
        expect(counts["v3"], counts["v2"], case)
    names = {"read": list(TABLES), "runs": list(TABLES), "planning": ["v3", "none"]}
    repeat = 1 if case == "hundred" else arguments.repeat

    def run(name: str, _: int) -> Figures:
        return run_child(f"{name}:{case}")

    runs = in_turn(names.get(case, ["v3", "v2"]), run, repeat)
    print_runs("v3", runs, [("v3", "none"), ("v2", "none"), ("v3", "v2")], case=case)


def _delete(work: str, name: str, where: str) -> int:
    table = catalog(work).load_table(f"db.{name}")
    table.delete(where)
    count: int = table.scan().count()
    return count


OWN = {"writes": writes, "upgraded": upgraded}
"""Cases that make a table of their own in each process."""


def main() -> None:
    """Print a line a case."""
    arguments = parser(__doc__)
    arguments.add_argument("--work", required=True, help="a scratch folder; emptied")
    arguments.add_argument("--rows", type=int, default=20_000_000)
    arguments.add_argument("--cases", default=CASES)
    given = arguments.parse_args()
    given.work = str(Path(given.work).resolve())
    if given.child:
        measure(given, *given.child.split(":"))
        return
    for case in given.cases.split(","):
        _case(given, case)
    shutil.rmtree(given.work)


if __name__ == "__main__":
    main()
