"""`icecomb migrate apply --as`: a second table over the files of a Hive table, which stays."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import migrate
from icecomb.catalog.report.progress import Silent
from icecomb.format.errors import MigrationError, ValidationError
from tests.catalog.numbered_rows import numbers

_NAMES = itertools.count()
EXTERNAL = {"EXTERNAL": "TRUE", "team": "x"}


@pytest.fixture
def new(catalog: Any, namespace: str) -> Any:
    name = f"{namespace}.second{next(_NAMES)}"
    yield name
    if catalog.table_exists(name):
        catalog.drop_table(name)


def ids(catalog: Any, name: str) -> list[int]:
    return sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("keys", [{"k": "int"}, {}])
def test_both_tables_live_on_and_neither_takes_files_of_the_other_along(
    make_hive_table: Any, run: Any, new: str, keys: dict[str, str]
) -> None:
    kind = {"parameters": EXTERNAL, "table_type": "EXTERNAL_TABLE"}
    hive = (
        make_hive_table({"id": "bigint"}, keys, {("1",): numbers(1, 2)}, **kind)
        if keys
        else make_hive_table({"id": "bigint"}, rows=numbers(1, 2), **kind)
    )
    before, files, client = hive.state, hive.files(), hive.catalog.client
    code, out, err = run("apply", hive.name, "--as", new, form="json")
    made = json.loads(out)
    assert (code, err) == (0, "")
    assert (made["table"], made["files"], made["rows"], made["findings"]) == (new, 1, 2, [])
    assert (hive.state, hive.files()) == (before, files)
    table = hive.catalog.load_table(new)
    assert {key: table.properties[key] for key in ("gc.enabled", "snapshot")} == {
        "gc.enabled": "false",
        "snapshot": "true",
    }
    # The second one first: by us, by a metastore that is told to delete data.
    with pytest.raises(ValidationError, match=r"gc\.enabled"):
        hive.catalog.drop_table(new, purge_requested=True)
    extra = {"k": pa.array([1], pa.int32())} if keys else {}
    table.append(pa.table({"id": pa.array([3], pa.int64()), **extra}))
    table.delete("id = 1")
    client.drop_table(*new.split("."), delete_data=True)
    assert (hive.state, hive.files()) == (before, files)
    assert all(Path(path).exists() for path in files)
    # Then the Hive table.
    assert run("apply", hive.name, "--as", new)[0] == 0
    client.drop_table(*hive.name.split("."), delete_data=True)
    assert ids(hive.catalog, new) == [1, 2]


def test_who_would_delete_the_files_of_both_is_told_how_not_to(
    make_hive_table: Any, run: Any, new: str
) -> None:
    hive = make_hive_table({"id": "bigint"}, rows=numbers(1))
    code, out, err = run("apply", hive.name, "--as", new)
    assert code == 0
    assert f"source:             {hive.name}" in out
    name = ".".join(f"`{part}`" for part in hive.name.split("."))
    assert f"warning: DROP TABLE {name} would delete the files of both tables" in err
    assert "'EXTERNAL'='TRUE', 'external.table.purge'='false'" in err


def test_the_second_table_has_a_folder_of_its_own(
    make_hive_table: Any, run: Any, new: str, tmp_path: Path
) -> None:
    hive = make_hive_table({"id": "bigint"}, rows=numbers(1))
    place = tmp_path / "its-own"
    inside = f"file:{hive.folder}/inside"
    code, _, err = run("apply", hive.name, "--as", new, "--location", inside)
    assert code == 1
    assert f"the Hive table is in file:{hive.folder}" in err
    assert not hive.catalog.table_exists(new)
    assert run("apply", hive.name, "--as", new, "--location", place.as_uri())[0] == 0
    assert hive.catalog.load_table(new).location() == place.as_uri()
    assert any(place.rglob("*.metadata.json"))
    pq.write_table(numbers(7), hive.folder / "later.parquet")
    assert ids(hive.catalog, new) == [1]  # the files as they were


def test_a_second_table_is_one_and_needs_a_free_name(
    make_hive_table: Any, run: Any, new: str
) -> None:
    hive = make_hive_table({"id": "bigint"}, rows=numbers(1))
    bad = make_hive_table({"id": "bigint", "u": "uniontype<int>"})
    assert run("apply", hive.name, bad.name, "--as", new)[0] == 2
    assert run("apply", "made.*", "--as", new)[0] == 2
    assert run("apply", hive.name, "--location", "file:/x")[0] == 2
    code, _, err = run("apply", bad.name, "--as", new)
    assert (code, "cannot be migrated" in err) == (3, True)
    for more in ((), ("--dry-run",)):
        code, _, err = run("apply", hive.name, "--as", bad.name, *more)
        assert (code, "exists already" in err) == (1, True)
    assert run("apply", hive.name, "--as", new, "--dry-run")[0] == 0
    assert not hive.catalog.table_exists(new)
    # A migration in place is still open to the Hive table.
    assert run("apply", hive.name, "--as", new)[0] == 0
    assert migrate.apply(hive.catalog, hive.name).rows == 1
    assert ids(hive.catalog, hive.name) == ids(hive.catalog, new) == [1]


class Writer(Silent):
    """Somebody who writes each time when all footers were read."""

    def __init__(self, write: Callable[[], object], times: int) -> None:
        self.write = write
        self.times = times
        self.said: list[str] = []

    @contextmanager
    def task(self, what: str, total: int, unit: str) -> Iterator[Any]:
        with Silent().task(what, total, unit) as advance:
            yield advance
        if what == "reading footers" and self.times:
            self.times -= 1
            self.write()

    def say(self, message: str) -> None:
        self.said.append(message)


def test_a_table_that_is_overwritten_while_it_is_planned_is_looked_at_again(
    make_hive_table: Any, new: str
) -> None:
    parts = {(k,): numbers(int(k)) for k in ("1", "2", "3")}
    hive = make_hive_table({"id": "bigint"}, {"k": "int"}, parts)

    def overwrite() -> None:  # INSERT OVERWRITE of two partitions, DROP PARTITION
        for at in (0, 1):
            (hive.folder / f"p{at}" / "part-0.parquet").unlink()
            pq.write_table(numbers(at + 10), hive.folder / f"p{at}" / "new.parquet")
        hive.catalog.client.partitions.drop(*hive.name.split("."), ["k=3"])

    writer = Writer(overwrite, 1)
    made = migrate.snapshot(hive.catalog, hive.name, new, progress=writer)
    assert (made.files, made.rows, ids(hive.catalog, new)) == (2, 2, [10, 11])
    assert writer.said == [f"{hive.name} was changed meanwhile: starting over"]
    folder = Path(hive.catalog.load_table(new).location().removeprefix("file:"))
    kinds = sorted(path.suffix for path in folder.rglob("*") if path.is_file())
    assert kinds == [".avro", ".avro", ".json"], "nothing of the first attempt"


def test_of_a_partition_that_moves_while_it_is_planned_the_new_folder_counts(
    make_hive_table: Any, new: str, tmp_path: Path
) -> None:
    hive = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)})
    elsewhere = tmp_path / f"{hive.folder.name}-moved"
    elsewhere.mkdir()
    pq.write_table(numbers(2), elsewhere / "part-0.parquet")

    def move() -> None:  # ALTER TABLE ... PARTITION ... SET LOCATION: no file changes
        (one,) = hive.partitions
        moved = replace(one, storage=replace(one.storage, location=f"file:{elsewhere}"))
        hive.catalog.client.partitions.alter(*hive.name.split("."), [moved])

    migrate.snapshot(hive.catalog, hive.name, new, progress=Writer(move, 1))
    assert ids(hive.catalog, new) == [2]


def test_no_second_table_is_made_of_a_table_that_never_stands_still(
    make_hive_table: Any, new: str, tmp_path: Path
) -> None:
    hive = make_hive_table({"id": "bigint"}, rows=numbers(1))
    count, place = itertools.count(), tmp_path / "never"
    late = lambda: pq.write_table(numbers(2), hive.folder / f"late{next(count)}.parquet")  # noqa: E731
    with pytest.raises(MigrationError, match="changed during each of 3 attempts"):
        migrate.snapshot(
            hive.catalog, hive.name, new, location=place.as_uri(), progress=Writer(late, 100)
        )
    assert next(count) == 3
    assert not hive.catalog.table_exists(new)
    assert not [path for path in place.rglob("*") if path.is_file()]
