"""A table is upgraded between two attempts of a commit to it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog.hadoop.pointer import HadoopPointer
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest

CHANGES = {
    "delete": lambda table: table.delete("id = 3"),
    "append": lambda table: table.append(frame(8, 9)),
    "rewrite manifests": lambda table: table.maintenance.rewrite_manifests(),
    "rewrite data files": lambda table: table.maintenance.rewrite_data_files(
        options={"rewrite-all": "true", "max-files-to-rewrite": "1"}
    ),
}


def frame(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


@pytest.mark.parametrize(
    ("change", "manifests"),
    [
        ("delete", "one"),
        ("delete", "many"),
        ("append", "one"),
        ("rewrite manifests", "many"),
        ("rewrite data files", "one"),
    ],
)
def test_every_file_that_is_kept_says_how_old_it_is(lake, monkeypatch, change, manifests):
    """Iceberg Java takes an age from the manifest list for added files only, and fails without."""
    least = "2" if manifests == "one" else "100"
    given = {"format-version": "1", "commit.manifest.min-count-to-merge": least}
    table = lake.create_table("db.t", frame().schema, properties=given)
    for part in (frame(1, 2), frame(3, 4), frame(5)):
        table.append(part)
    before_swap(monkeypatch, lambda: upgrade(lake.load_table("db.t")))
    CHANGES[change](table)
    assert table.refresh().metadata.format_version == 2
    found = [
        (entry.status.name, entry.sequence_number)
        for manifest in read_manifests(table.io, table.current_snapshot())
        for entry in read_manifest(table.io, manifest)
    ]
    assert {number for status, number in found if status != "ADDED"} <= {0}
    assert {number for status, number in found if status == "ADDED"} <= {0, 1}


@pytest.mark.parametrize("change", list(CHANGES))
def test_every_row_has_an_id_of_its_own_after_an_upgrade_to_version_3(lake, monkeypatch, change):
    least = "100" if change == "rewrite manifests" else "2"
    given = {"format-version": "2", "commit.manifest.min-count-to-merge": least}
    table = lake.create_table("db.t", frame().schema, properties=given)
    for part in (frame(1, 2), frame(3, 4), frame(5)):
        table.append(part)
    before_swap(monkeypatch, lambda: upgrade(lake.load_table("db.t"), "3"))
    CHANGES[change](table)
    metadata = table.refresh().metadata
    rows = sorted(table.scan().to_arrow()["id"].to_pylist())
    gone, new = ([3], []) if change == "delete" else ([], [8, 9] if change == "append" else [])
    assert rows == [row for row in [1, 2, 3, 4, 5, *new] if row not in gone]
    ids = sorted(
        number
        for manifest in read_manifests(table.io, table.current_snapshot())
        for entry in read_manifest(table.io, manifest, discard_deleted=True)
        for number in range(
            entry.data_file.first_row_id or 0,
            (entry.data_file.first_row_id or 0) + entry.data_file.record_count,
        )
    )
    assert len(set(ids)) == len(ids) == len(rows)
    snapshot = metadata.current_snapshot()
    assert metadata.next_row_id == snapshot.first_row_id + snapshot.added_rows > ids[-1]


def upgrade(table, version="2") -> None:
    with table.update_properties() as update:
        update.set("format-version", version)


def before_swap(monkeypatch, step) -> None:
    """Let somebody be first once; no turns are taken, as that would wait for ever."""

    def no_queue(_self, _held, _base=None):
        return False

    left, swap = [step], HadoopPointer.swap

    def overtaken(self, *given):
        if left:
            left.pop()()
        return swap(self, *given)

    monkeypatch.setattr(HadoopPointer, "queue", no_queue)
    monkeypatch.setattr(HadoopPointer, "swap", overtaken)
