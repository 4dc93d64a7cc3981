"""Random tables, copied to another folder and back: the same rows in all snapshots, and the same bytes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random

import pytest
from copied_table import content_of, path_of, stated_lengths, texts
from random_table import RandomTable, ordered

from icecomb.catalog import open_table
from icecomb.catalog.maintenance import backup
from icecomb.format.storage.file_io import FileIO

IO = FileIO()
FORMATS = ("parquet", "orc", "avro")


def moved(metadata, target) -> Path:
    plan = backup.plan_relocation(IO, str(metadata), None, str(target), check_sizes=True)
    assert not plan.is_blocked
    backup.relocate(IO, plan, copy=True)
    return Path(plan.new_metadata_file)


def history(metadata):
    """The rows of each snapshot."""
    table = open_table(metadata)
    return {
        snapshot.snapshot_id: ordered(
            table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist()
        )
        for snapshot in table.snapshots()
    }


@pytest.mark.seeds(40, gate=4)
def test_a_table_moved_there_and_back_is_the_same(lake, tmp_path, seed):
    random = Random(seed)
    made = RandomTable(random, lake, "db.t", FORMATS[seed % 3])
    for step in range(random.randint(3, 8)):
        made.change()
        if step == 2 and random.random() < 0.5:
            made.table.transaction().upgrade_table_version(3).commit_transaction()
    table = lake.load_table("db.t")
    metadata, folder = path_of(table.metadata_location), path_of(table.metadata.location)
    expected = history(metadata)
    target = tmp_path / ("x" * random.randint(1, 40))

    there = moved(metadata, target)

    assert history(there) == expected
    assert [(p, n) for p, n in stated_lengths(there) if p.stat().st_size != n] == []
    folder.rename(tmp_path / "gone")
    assert history(there) == expected
    assert [name for name, text in texts(target) if str(folder) in text] == []
    back = moved(there, folder)
    shutil.rmtree(target)
    assert history(back) == expected
    assert json.loads(back.read_text()) == json.loads(
        (tmp_path / "gone/metadata" / back.name).read_text()
    )
    before, after = content_of(tmp_path / "gone"), content_of(folder)
    rows = {name for name in before if "deletes" not in name and name.startswith("data/")}
    assert {name: after.get(name) for name in rows} == {name: before[name] for name in rows}
