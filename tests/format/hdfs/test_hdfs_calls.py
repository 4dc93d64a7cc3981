"""How many calls of the web interfaces an operation takes: each costs milliseconds."""

from __future__ import annotations

import random
import threading
import time

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import CorruptFileError, NoSuchFileError
from icecomb.format.storage.file_io import FileIO
from tests.rings import sampled

OPEN = ("OPEN", "OPEN@data")


@pytest.fixture
def catalog(proxied, place):
    return load_catalog("files", type="hadoop", warehouse=place, **proxied)


@pytest.fixture
def table(catalog):
    """Three data files of 100 rows each, by three commits; ids do not overlap."""
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    for start in (0, 100, 200):
        table.append(pa.table({"id": pa.array(range(start, start + 100), pa.int64())}))
    return table


def test_a_cold_load_opens_the_hint_and_the_metadata(catalog, table, proxy):
    """It looks for the version that the hint names, and for the next, in their three spellings."""
    proxy.calls.clear()
    loaded = catalog.load_table("db.t")
    assert proxy.calls == {**dict.fromkeys(OPEN, 2), "GETFILESTATUS": 3 + 3}
    assert loaded.metadata.current_snapshot_id == table.metadata.current_snapshot_id


def test_planning_a_point_opens_the_list_and_each_manifest_once(catalog, table, proxy, proxied):
    fresh = load_catalog(
        "other", type="hadoop", warehouse=catalog.properties["warehouse"], **proxied
    ).load_table("db.t")
    proxy.calls.clear()
    tasks = list(fresh.scan("id = 150").plan_files())
    assert len(tasks) == 1
    assert proxy.calls == dict.fromkeys(OPEN, 4)


def test_a_small_read_over_known_manifests_opens_the_list_and_one_data_file(catalog, table, proxy):
    fresh = catalog.load_table("db.t").scan("id = 150")
    assert len(list(fresh.plan_files())) == 1
    proxy.calls.clear()
    assert fresh.to_arrow()["id"].to_pylist() == [150]
    assert proxy.calls == dict.fromkeys(OPEN, 2)


def test_a_commit_sends_each_of_its_five_files_once_and_opens_its_base_and_the_hint(table, proxy):
    """Data file, manifest, manifest list, metadata and hint: four calls and the upload each, and a look at the new name.

    Asked besides: whether the folder is there (before the rows and before the commit), whether the
    next version is (at once, and in its two other spellings), whether the base is there still (in
    its three), and whether somebody waits for a turn; and the hint is opened before and after, which tells of
    writers whose files are deleted again.
    """
    proxy.calls.clear()
    table.append(pa.table({"id": pa.array([1000], pa.int64())}))
    assert proxy.calls == {
        **dict.fromkeys(("CREATE", "CREATE@data", "RENAME"), 5),
        "GETFILESTATUS": 5 + 4 + 2 + 3 + 3,
        "LISTSTATUS": 1,
        **dict.fromkeys(OPEN, 1 + 2),
    }


def test_a_commit_of_many_partitions_costs_four_calls_a_file(catalog, proxy):
    catalog.create_namespace("db")
    rows = pa.table({"id": pa.array(range(12), pa.int64())})
    table = catalog.create_table("db.many", rows.schema)
    with table.update_spec() as update:
        update.add_identity("id")
    proxy.calls.clear()
    table.append(rows)
    assert proxy.calls["CREATE@data"] == proxy.calls["RENAME"] == 12 + 4
    assert table.scan().count() == 12


def test_a_file_that_is_read_on_and_on_takes_few_calls_and_leaves_no_thread(proxied, place, proxy):
    """Pieces of 1, 1, 2 and 4 MiB, then of 8 MiB, several at a time."""
    io = FileIO(proxied)
    data = random.Random(1).randbytes(40 << 20)
    io.create(f"{place}/x", data)
    proxy.calls.clear()
    with io.open_input(f"{place}/x") as file:
        assert b"".join(iter(lambda: file.read(1 << 20), b"")) == data
    assert proxy.calls == {"GETFILESTATUS": 1, **dict.fromkeys(OPEN, 4 + 4)}
    with io.open_input(f"{place}/x") as file:
        assert b"".join(file.read(1 << 20) for _ in range(10)) == data[: 10 << 20]
    end = time.monotonic() + 60
    while any(thread.name.startswith("hdfs-ahead") for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("stated", sampled([3_000_001, 4_000_000, 2_999_999, 10, 700_000], keep=2))
def test_a_file_of_another_length_than_stated_is_named_by_every_read_to_its_end(
    proxied, place, stated
):
    io = FileIO(proxied)
    io.create(f"{place}/x", b"1" * 3_000_000)
    match = "x goes on after byte" if stated < 3_000_000 else "x ends (at|before) byte"
    for start in (0, stated - 8):
        with io.open_input(f"{place}/x", stated) as file:
            file.seek(start)
            with pytest.raises(CorruptFileError, match=match) as caught:
                file.read()
            assert caught.value.context["path"] == f"{place}/x"
    with io.open_input(f"{place}/x", 3_000_000) as file:
        file.seek(2_999_990)
        assert file.read() == b"1" * 10
        file.seek(0)
        assert len(file.read()) == 3_000_000


def test_a_data_file_that_is_gone_is_named_though_it_was_not_looked_at(table):
    (task, *_) = table.scan("id = 150").plan_files()
    table.io.delete(task.file.file_path)
    with pytest.raises(NoSuchFileError, match="does not exist") as caught:
        table.scan("id = 150").to_arrow()
    assert caught.value.context["path"] == task.file.file_path


@pytest.mark.parametrize("file_format", sampled(["parquet", "orc", "avro"], keep=1))
def test_a_data_file_that_was_replaced_by_a_longer_or_shorter_one_is_an_error(
    catalog, table, file_format
):
    with table.update_properties() as update:
        update.set("write.format.default", file_format)
    table.append(pa.table({"id": pa.array(range(500, 600), pa.int64())}))
    (task, *_) = table.scan("id = 550").plan_files()
    data = table.io.read(task.file.file_path)
    for other in (data + data, data[:-1], b""):
        table.io.delete(task.file.file_path)
        table.io.create(task.file.file_path, other)
        with pytest.raises(CorruptFileError, match=task.file.file_path):
            table.scan("id >= 500").to_arrow()
