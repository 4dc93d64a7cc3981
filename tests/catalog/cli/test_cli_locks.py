from __future__ import annotations

import json
import socket
import subprocess
import sys

import pyarrow as pa
import pytest

from icecomb.catalog import cli, load_catalog
from icecomb.format.errors import LockTimeoutError


@pytest.fixture
def locked(catalog, namespace):
    """A table, and somebody's lock on it."""
    catalog.create_table(f"{namespace}.orders", pa.schema([("id", pa.int64())]))
    answer = catalog.client.lock(
        namespace, "orders", user="ann", host="etl-07", agent="icecomb-0000-pid4711"
    )
    yield answer.lock_id
    catalog.client.unlock(answer.lock_id)


def run(metastore, *arguments):
    return cli.main(["--uri", metastore.uri, "--output", "json", "locks", *arguments])


def test_locks_of_a_table_name_their_holder(metastore, namespace, locked, capsys):
    assert run(metastore, f"{namespace}.orders") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["lock"], row["table"]) == (locked, f"{namespace}.orders")
    assert (row["state"], row["holder"], row["agent"]) == (
        "acquired",
        "ann@etl-07",
        "icecomb-0000-pid4711",
    )
    assert (row["pid"], row["gone"]) == (4711, False), "of a process elsewhere nothing is known"
    assert row["age"].endswith((" s", " min"))
    assert run(metastore) == 0
    assert locked in [row["lock"] for row in json.loads(capsys.readouterr().out)]


@pytest.mark.parametrize("wrong", ["{}.ordres", "{}.*", "nope.orders"])
def test_locks_of_a_table_that_is_not_there_are_an_error(
    metastore, namespace, locked, capsys, wrong
):
    assert run(metastore, wrong.format(namespace)) == 1
    out, err = capsys.readouterr()
    assert (out, err.startswith(f"error: There is no table {wrong.format(namespace)}\n")) == (
        "",
        True,
    )


def test_locks_on_a_table_that_was_dropped_are_listed(
    metastore, catalog, namespace, locked, capsys
):
    catalog.client.drop_table(namespace, "orders")
    assert run(metastore, f"{namespace}.orders") == 0
    assert [row["lock"] for row in json.loads(capsys.readouterr().out)] == [locked]


def test_a_lock_that_a_process_of_this_host_left_behind_is_known_at_once(
    metastore, catalog, namespace, rows, capsys
):
    table = catalog.create_table(f"{namespace}.left", rows.schema)
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    answer = catalog.client.lock(
        namespace,
        "left",
        user="ann",
        host=socket.gethostname(),
        agent=f"icecomb-0000-pid{process.pid}",
    )
    remedy = f"icecomb locks break {answer.lock_id} --yes"
    assert run(metastore, f"{namespace}.left") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["pid"], row["gone"]) == (process.pid, True)
    assert cli.main(["--uri", metastore.uri, "doctor", f"{namespace}.left"]) == 3
    assert f"-> {remedy}" in capsys.readouterr().out
    # of another table it is said, and no problem
    catalog.create_table(f"{namespace}.other", rows.schema)
    assert cli.main(["--uri", metastore.uri, "doctor", f"{namespace}.other"]) == 0
    assert f"note     lock: {namespace}.left is locked" in capsys.readouterr().out
    impatient = load_catalog(
        "impatient", uri=metastore.uri, **{"iceberg.hive.lock-timeout-ms": "100"}
    )
    with pytest.raises(LockTimeoutError, match="does not run here any more") as error:
        impatient.load_table(table.identifier).append(rows)
    assert error.value.hint == f"Release it: {remedy}"
    impatient.close()
    assert run(metastore, "break", str(answer.lock_id), "--yes") == 0


def test_a_lock_of_a_process_that_was_killed_here_keeps_nobody_waiting(catalog, namespace, rows):
    table = catalog.create_table(f"{namespace}.killed", rows.schema)
    code = (
        "from icecomb.catalog.hive.lock import LockSettings, TableLock\n"
        "print(TableLock(None, 'db', 't', LockSettings.of({})).agent)"
    )
    dead = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    catalog.client.lock(
        *table.identifier, user="ann", host=socket.gethostname(), agent=dead.stdout.strip()
    )
    table.append(rows)
    assert table.refresh().scan().count() == rows.num_rows
    assert catalog.client.locks(*table.identifier) == []


def test_breaking_a_lock_is_a_dry_run_until_told_otherwise(
    metastore, namespace, locked, catalog, capsys
):
    def held():
        return [row.lock_id for row in catalog.client.locks(namespace, "orders")]

    assert run(metastore, "break", str(locked)) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["broken"] is False
    assert "--yes" in err
    assert held() == [locked]

    assert run(metastore, "break", str(locked), "--yes") == 0
    assert json.loads(capsys.readouterr().out)["broken"] is True
    assert held() == []


def test_breaking_a_lock_that_is_gone_is_one_line(metastore, capsys):
    assert run(metastore, "break", "987654321", "--yes") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0] == "error: The metastore has no lock 987654321"
