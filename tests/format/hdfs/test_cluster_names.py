"""One file by all names of its cluster: it is added once, and deleted by none of them."""

from __future__ import annotations

import io as bytes_io
import itertools
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import ValidationError
from tests.rings import sampled

SPELLINGS = (
    *("hdfs://ns/in/f.parquet", "hdfs://nn1:8020/in/f.parquet", "hdfs:///in/f.parquet"),
    *("/in/f.parquet", "hdfs://ns//in/./f.parquet", "webhdfs://ns/in/f.parquet"),
    *("webhdfs://{web}/in/f.parquet", "viewfs://c/mnt/f.parquet", "HDFS://ns/in/f.parquet"),
)
ROUTER = "hdfs://router:8888/in/f.parquet"


@pytest.fixture
def names(memory_settings: dict[str, str]) -> dict[str, str]:
    """The cluster in memory as a nameservice, as a mount point, and by a router."""
    web = memory_settings.pop("dfs.namenode.http-address")
    return {
        **memory_settings,
        "fs.defaultFS": "hdfs://ns",
        "dfs.nameservices": "ns,fed",
        "dfs.ha.namenodes.ns": "a",
        "dfs.namenode.rpc-address.ns.a": "nn1:8020",
        "dfs.namenode.http-address.ns.a": web,
        "dfs.ha.namenodes.fed": "r",
        "dfs.namenode.rpc-address.fed.r": "router:8888",
        "dfs.namenode.http-address.fed.r": web.replace("127.0.0.1", "localhost"),
        "fs.viewfs.mounttable.c.link./mnt": "hdfs://ns/in",
        "fs.viewfs.mounttable.c.link./lake": "hdfs://ns/lake",
    }


@pytest.fixture
def table(memory: Any, names: dict[str, str]) -> Any:
    lake = load_catalog("lake", type="hadoop", warehouse="hdfs://ns/lake", **names)
    lake.create_namespace("s")
    made = lake.create_table("s.t", pa.schema([("id", pa.int64())]))
    out = bytes_io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2]}), out)
    memory.put("/in/f.parquet", out.getvalue())
    return made


def spelled(text: str, names: dict[str, str]) -> str:
    return text.format(web=names["dfs.namenode.http-address.ns.a"])


@pytest.mark.parametrize(
    ("first", "second"), sampled(itertools.product((*SPELLINGS, ROUTER), repeat=2), keep=7)
)
def test_a_file_is_added_once(table: Any, names: dict[str, str], first: str, second: str) -> None:
    if first != second:
        with pytest.raises(ValidationError):
            table.add_files([spelled(first, names), spelled(second, names)])
    table.add_files([spelled(first, names)])
    with pytest.raises(ValidationError, match=r"has file .* already|may have file .* already"):
        table.add_files([spelled(second, names)])
    assert table.refresh().scan().count() == 2


@pytest.mark.parametrize(
    "place", sampled(["viewfs://c/lake", "hdfs://nn1:8020/lake", "/lake"], keep=1)
)
def test_a_table_opened_by_another_name_keeps_its_files(
    table: Any, names: dict[str, str], memory: Any, place: str
) -> None:
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    memory.put("/lake/s/t/data/left.parquet", b"left")
    same = load_catalog("lake", type="hadoop", warehouse=place, **names).load_table("s.t")
    done = same.maintenance.remove_orphan_files(dry_run=False)
    assert [one.rpartition("/")[2] for one in done.orphan_file_location] == ["left.parquet"]
    same.overwrite(pa.table({"id": pa.array([2], pa.int64())}))
    same.maintenance.expire_snapshots().older_than(2**62).retain_last(1).commit()
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == [2]


def test_a_router_is_another_name(table: Any, names: dict[str, str]) -> None:
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    lake = load_catalog("lake", type="hadoop", warehouse="hdfs://router:8888/lake", **names)
    with pytest.raises(ValidationError, match="its folder is hdfs://router:8888/lake/s/t"):
        lake.load_table("s.t").maintenance.remove_orphan_files(dry_run=False)
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == [1]


def test_a_table_opened_by_a_router_is_written_to(table: Any, names: dict[str, str]) -> None:
    rows = pa.table({"id": pa.array([1], pa.int64())})
    table.append(rows)
    lake = load_catalog("lake", type="hadoop", warehouse="hdfs://router:8888/lake", **names)
    lake.load_table("s.t").append(rows)
    assert table.refresh().scan().count() == 2
