"""Names a metastore does not take, files it is not to lose, and tables that can only be dropped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from icecomb.catalog import cli, load_catalog
from icecomb.format.errors import (
    CommitStateUnknownError,
    IcecombError,
    NoSuchIcebergTableError,
    TableAlreadyExistsError,
    UnsupportedError,
)


def path(location: str) -> Path:
    return Path(location.removeprefix("file:"))


@pytest.fixture
def drop(metastore: Any, capfd: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str) -> tuple[int, Any, str]:
        capfd.readouterr()
        code = cli.main(["--uri", metastore.uri, "--output", "json", "drop", *arguments])
        out, err = capfd.readouterr()
        return code, json.loads(out) if out else None, err

    return run


@pytest.mark.parametrize("name", ["t'\"b", "tä", "a b", "x" * 300, "../t", "", "\ud800"], ids=ascii)
def test_a_name_that_the_metastore_does_not_take_leaves_nothing_behind(
    catalog, namespace, rows, name
):
    folder = path(catalog.load_namespace_properties(namespace)["location"])
    for make in (
        lambda: catalog.create_table((namespace, name), rows.schema),
        lambda: catalog.create_view((namespace, name), rows.schema, {"spark": "SELECT 1"}),
    ):
        with pytest.raises(IcecombError) as error:
            make()
        assert "\n" not in error.value.message
    assert catalog.list_tables(namespace) == []
    assert [one for one in folder.rglob("*") if one.is_file()] == []


def test_a_table_whose_metadata_is_lost_is_dropped_by_command(drop, catalog, table):
    path(table.metadata_location).unlink()
    code, said, err = drop(".".join(table.name()), "--purge")
    assert (code, said["dropped"], said["metadata"]) == (0, False, table.metadata_location)
    assert "cannot be read" in err
    assert catalog.table_exists(table.name())
    assert drop(".".join(table.name()), "--purge", "--yes")[1]["dropped"] is True
    assert not catalog.table_exists(table.name())


def test_a_purge_by_command_lists_what_it_leaves_and_deletes_what_it_is_told_to(
    drop, catalog, table, rows, tmp_path
):
    name, file = ".".join(table.name()), tmp_path / "given.parquet"
    pq.write_table(rows, file)
    table.add_files([f"file:{file}"])
    left = {f"file:{tmp_path}": 1}
    code, said, _ = drop(name, "--purge")
    assert (code, said["dropped"], said["left outside"]) == (0, False, left)
    assert drop(name, "--outside", str(tmp_path))[0] == 2
    code, said, err = drop(name, "--purge", "--outside", "/", "--yes")
    assert (code, said) == (1, None)
    assert "a root" in err
    assert catalog.table_exists(table.name())
    code, said, _ = drop(name, "--purge", "--outside", str(tmp_path), "--yes")
    assert (code, said["dropped"], said["left outside"]) == (0, True, {})
    assert not file.exists()


def test_no_more_of_a_table_whose_metadata_is_lost_is_purged(drop, catalog, table, tmp_path):
    path(table.metadata_location).unlink()
    code, _, err = drop(".".join(table.name()), "--purge", "--outside", str(tmp_path), "--yes")
    assert code == 1
    assert path(table.metadata_location).name in err
    assert catalog.table_exists(table.name())


def test_a_table_that_shares_its_files_is_not_purged_not_even_in_a_dry_run(
    drop, catalog, namespace, rows
):
    table = catalog.create_table(
        f"{namespace}.kept", rows.schema, properties={"gc.enabled": "false"}
    )
    table.append(rows)
    for arguments in (("--purge",), ("--purge", "--yes")):
        code, said, err = drop(f"{namespace}.kept", *arguments)
        assert (code, said) == (1, None)
        assert "gc.enabled is false" in err
    assert table.refresh().scan().count() == 3
    assert drop(f"{namespace}.kept", "--yes")[0] == 0
    assert path(table.metadata_location).is_file()


def test_a_table_of_a_later_format_version_is_neither_read_nor_written_but_can_be_dropped(
    catalog, table, rows
):
    file = path(table.metadata_location)
    file.write_text(json.dumps({**json.loads(file.read_text()), "format-version": 4}))
    before = sorted(file.parent.rglob("*"))
    for act in (
        lambda: catalog.load_table(table.name()),
        lambda: catalog.purge_table(table.name()),
        lambda: catalog.register_table((table.name()[0], "again"), table.metadata_location),
    ):
        with pytest.raises(UnsupportedError, match="version 4"):
            act()
    assert sorted(file.parent.rglob("*")) == before
    catalog.drop_table(table.name())
    assert not catalog.table_exists(table.name())
    assert file.is_file()


def test_an_encrypted_table_is_not_registered(catalog, table, namespace):
    file = path(table.metadata_location)
    content = json.loads(file.read_text())
    content["properties"]["encryption.key-id"] = "k"
    file.write_text(json.dumps(content))
    with pytest.raises(UnsupportedError, match="encrypted"):
        catalog.register_table((namespace, "again"), table.metadata_location)
    assert not catalog.table_exists((namespace, "again"))
    assert file.is_file()


@pytest.mark.parametrize("loss", ["request", "reply"])
def test_a_registration_whose_answer_is_lost_never_costs_the_file(
    catalog, proxied, proxy, table, namespace, loss
):
    with table.update_properties() as change:
        change.set("commit.status-check.num-retries", "0")
    proxy.fail("create_table", loss)
    if loss == "reply":
        proxied.register_table((namespace, "again"), table.metadata_location)
    else:
        with pytest.raises(CommitStateUnknownError):
            proxied.register_table((namespace, "again"), table.metadata_location)
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table(table.name(), table.metadata_location)
    assert path(table.metadata_location).is_file()
    assert catalog.table_exists((namespace, "again")) == (loss == "reply")


def test_everything_in_a_namespace_is_listed_on_request(metastore, catalog, namespace, table, rows):
    catalog.create_view((namespace, "v"), rows.schema, {"spark": "SELECT 1"})
    everything = load_catalog("all", uri=metastore.uri, **{"list-all-tables": "true"})
    assert everything.list_tables(namespace) == [(namespace, "t"), (namespace, "v")]
    assert catalog.list_tables(namespace) == [(namespace, "t")]
    with pytest.raises(NoSuchIcebergTableError):
        everything.load_table((namespace, "v"))
    everything.close()
