from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import cli
from icecomb.catalog.cli.output.progress import TerminalProgress, duration, line
from tests.peers.ports import closed_port


@pytest.fixture
def icecomb(metastore: Any, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs a command on the shared metastore: exit code, stdout, stderr."""

    def run(*arguments: str, uri: str | None = metastore.uri) -> tuple[int, str, str]:
        capfd.readouterr()
        where = [] if uri is None else ["--uri", uri]
        code = cli.main([*where, *arguments])
        return code, *capfd.readouterr()

    return run


@pytest.fixture
def orders(catalog: Any, namespace: str) -> str:
    """A table with two snapshots."""
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "what": ["a\tb", None]})
    table = catalog.create_table(f"{namespace}.orders", rows.schema)
    table.append(rows)
    table.append(rows.slice(0, 1))
    return f"{namespace}.orders"


@pytest.fixture
def plain(catalog: Any, namespace: str) -> str:
    """A table of Hive's own."""
    from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable, StorageDescriptor

    storage = StorageDescriptor(
        columns=(FieldSchema("a", "int"),), location=f"/nowhere/{namespace}-plain"
    )
    catalog.client.create_table(
        HiveTable(
            namespace,
            "plain",
            storage=storage,
            table_type="EXTERNAL_TABLE",
            parameters={"EXTERNAL": "TRUE"},
        )
    )
    return f"{namespace}.plain"


def test_the_exit_codes_are_documented(icecomb: Any) -> None:
    code, out, _ = icecomb("--help")
    assert code == 0
    for number in (
        "0 done",
        "1 error",
        "2 wrong usage",
        "3 blocked",
        "4 unknown",
        "130 interrupted",
    ):
        assert number in " ".join(out.split())
    assert cli.__doc__ is not None
    assert "130  interrupted" in cli.__doc__


def test_every_command_has_help(icecomb: Any) -> None:
    for command in (
        "tables",
        "namespaces",
        "describe",
        "head",
        "snapshots",
        *("history", "files", "partitions", "manifests", "refs", "schema", "diff"),
        *("properties", "rollback", "branch", "tag", "completion"),
        "commit",
        "doctor",
        "drop",
        "metastore",
        "migrate",
        "register",
        "repair",
        "views",
        "demo",
        "spark-conf",
    ):
        code, out, err = icecomb(command, "--help")
        assert (code, err) == (0, "")
        assert "Usage: icecomb" in out
        assert "\\" not in out, "a mark of click's own is shown"


def test_tables_and_namespaces_are_listed_as_text_and_as_json(
    icecomb: Any, orders: str, plain: str
) -> None:
    namespace = orders.partition(".")[0]
    assert icecomb("tables", namespace) == (0, f"TABLE\n{orders}\n", "")
    _, out, _ = icecomb("--output", "json", "tables")
    assert {"table": orders} in json.loads(out)
    assert {"table": plain} not in json.loads(out)
    _, out, _ = icecomb("namespaces")
    assert namespace in out.splitlines()


def test_describe_head_and_snapshots_show_a_table(icecomb: Any, orders: str) -> None:
    code, out, _ = icecomb("--output", "json", "describe", orders)
    described = json.loads(out)
    assert (code, described["table"], described["snapshots"]) == (0, orders, 2)
    assert described["columns"] == ["id  long", "what  string"]
    assert icecomb("head", orders, "-n", "5", "--where", "id = 2") == (
        0,
        "ID  WHAT\n2   null\n",
        "",
    )
    _, out, _ = icecomb("head", orders, "-n", "1", "--columns", "what")
    assert out == "WHAT\na\\tb\n", "a tab in a value does not break a line in two"
    _, out, _ = icecomb("--output", "json", "snapshots", orders)
    assert [row["total rows"] for row in json.loads(out)] == ["2", "3"]
    first = json.loads(out)[0]["snapshot"]
    _, out, _ = icecomb("--output", "json", "head", orders, "--snapshot", str(first))
    assert len(json.loads(out)) == 2


def test_drop_is_a_dry_run_until_yes_and_keeps_the_files(
    icecomb: Any, catalog: Any, orders: str
) -> None:
    location = Path(catalog.load_table(orders).location().removeprefix("file:"))
    files = sorted(location.rglob("*"))
    code, out, err = icecomb("drop", orders)
    assert (
        code,
        "dropped:     false" in " ".join(out.split(" ")) or "false" in out,
        err.strip(),
    ) == (0, True, "dry run: add --yes to drop it")
    assert catalog.table_exists(orders)
    assert icecomb("drop", orders, "--yes")[0] == 0
    assert not catalog.table_exists(orders)
    assert sorted(location.rglob("*")) == files


def test_drop_with_purge_deletes_the_files_only_after_yes(
    icecomb: Any, catalog: Any, orders: str
) -> None:
    location = Path(catalog.load_table(orders).location().removeprefix("file:"))
    files = sorted(location.rglob("*"))
    code, out, _ = icecomb("--output", "json", "drop", orders, "--purge")
    assert code == 0
    assert json.loads(out)["files deleted in"] == catalog.load_table(orders).location()
    assert sorted(location.rglob("*")) == files
    assert icecomb("drop", orders, "--purge", "--yes")[0] == 0
    assert not catalog.table_exists(orders)
    assert [path for path in location.rglob("*") if path.is_file()] == []


@pytest.fixture
def folders(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Runs a command on a catalog of folders with a table `db.t`."""
    from icecomb.catalog import load_catalog

    monkeypatch.setenv("ICECOMB_CATALOG__FILES__TYPE", "hadoop")
    monkeypatch.setenv("ICECOMB_CATALOG__FILES__WAREHOUSE", str(tmp_path / "lake"))
    lake = load_catalog("files")
    lake.create_namespace("db")
    lake.create_table("db.t", pa.schema([("id", pa.int64())]))

    def run(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = cli.main(["--catalog", "files", *arguments])
        return code, *capfd.readouterr()

    return run


def test_a_dry_run_of_drop_refuses_what_drop_refuses(folders: Any, tmp_path: Path) -> None:
    table = tmp_path / "lake" / "db" / "t"
    dry, done = folders("drop", "db.t"), folders("drop", "db.t", "--yes")
    assert dry == done
    assert (dry[0], dry[1]) == (1, "")
    assert "cannot be dropped without its files" in dry[2]
    code, out, err = folders("drop", "db.t", "--purge")
    assert (code, err) == (0, "dry run: add --yes to drop it\n")
    assert f"files deleted in:  {table}" in out
    assert table.exists()
    assert folders("drop", "db.t", "--purge", "--yes")[0] == 0
    assert not table.exists()


@pytest.mark.jvm
@pytest.mark.parametrize("kept", ["in folders", "in a metastore"])
def test_a_dry_run_of_a_purge_refuses_a_table_that_shares_its_files(
    kept: str, request: pytest.FixtureRequest
) -> None:
    from icecomb.catalog import load_catalog

    if kept == "in folders":
        run, name = request.getfixturevalue("folders"), "db.t"
        table = load_catalog("files").load_table(name)
    else:
        run, name = request.getfixturevalue("icecomb"), request.getfixturevalue("orders")
        table = request.getfixturevalue("catalog").load_table(name)
    with table.update_properties() as change:
        change.set("gc.enabled", "false")
    for choice in ((), ("--yes",)):
        code, out, err = run("drop", name, "--purge", *choice)
        assert (code, out) == (1, "")
        assert "gc.enabled is false" in err
    assert run("describe", name)[0] == 0


COMMANDS = [
    ("describe", "{}"),
    ("head", "{}"),
    ("snapshots", "{}"),
    ("drop", "{}", "--yes"),
    ("migrate", "plan", "{}"),
    ("migrate", "apply", "{}"),
    ("migrate", "verify", "{}"),
    ("migrate", "revert", "{}", "--yes"),
    ("migrate", "finalize", "{}", "--yes"),
    ("migrate", "status", "{}"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_missing_table_is_one_line_and_exit_code_1(
    icecomb: Any, command: tuple[str, ...]
) -> None:
    for name in ("default.nowhere", "nowhere.t", "justone", "a.b.c"):
        code, out, err = icecomb(*(part.format(name) for part in command))
        # what may change all tables of a database does not take it by its bare name
        misused = name == "justone" and command[1] in {"apply", "revert", "finalize"}
        assert (code, out) == (2 if misused else 1, "")
        first, *rest = err.splitlines()
        assert first.startswith("error: ")
        assert all(text.startswith("  hint: ") for text in rest)
        assert len(rest) <= 1


@pytest.mark.parametrize("command", COMMANDS[:4], ids=" ".join)
def test_a_plain_hive_table_is_no_iceberg_table(
    icecomb: Any, catalog: Any, plain: str, command: tuple[str, ...]
) -> None:
    before = catalog.client.table(*plain.split("."))
    code, out, err = icecomb(*(part.format(plain) for part in command))
    assert (code, out) == (1, "")
    assert "not an Iceberg table" in err
    assert catalog.client.table(*plain.split(".")) == before


@pytest.mark.parametrize("command", [*COMMANDS, ("tables",), ("namespaces",)], ids=" ".join)
def test_an_unreachable_metastore_is_one_line(icecomb: Any, command: tuple[str, ...]) -> None:
    with closed_port() as port:
        uri = f"thrift://127.0.0.1:{port}"
        code, out, err = icecomb(*(part.format("a.b") for part in command), uri=uri)
    assert (code, out) == (1, "")
    assert err.startswith(f"error: The metastore {uri} cannot be reached")
    assert len(err.splitlines()) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("fly",),
        ("describe",),
        ("head", "a.b", "-n", "0"),
        ("migrate", "apply", "a.b", "--accept", "anything"),
        ("--output", "xml", "tables"),
        (),
    ],
)
def test_wrong_usage_is_exit_code_2(icecomb: Any, arguments: tuple[str, ...]) -> None:
    code, out, err = icecomb(*arguments)
    assert (code, out) == (2, "")
    assert err


def test_no_java_is_one_line_and_starts_nothing(
    icecomb: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    for command in (("metastore", "start"), ("tables",), ("demo",)):
        code, out, err = icecomb("--warehouse", str(tmp_path / "lake"), *command, uri=None)
        assert (code, "error: " in err) == (1, True), err
        assert "Java" in err
        assert "Traceback" not in out + err


def test_a_warehouse_that_cannot_be_written_is_one_line(icecomb: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = str(tmp_path / "file" / "lake")
    for command in (("metastore", "start"), ("tables",), ("demo",)):
        code, out, err = icecomb("--warehouse", folder, *command, uri=None)
        assert code == 1
        assert [text.split(":")[0] for text in err.splitlines() if "error" in text] == ["error"]
        assert "Traceback" not in out + err


@pytest.mark.full("embedded_metastore starts and stops it in the gate")
def test_the_embedded_metastore_is_started_found_and_stopped(icecomb: Any, tmp_path: Path) -> None:
    lake = ("--warehouse", str(tmp_path / "lake"), "--output", "json", "metastore")
    try:
        started = json.loads(icecomb(*lake, "start", uri=None)[1])
        found = json.loads(icecomb(*lake, "status", uri=None)[1])
        assert started == found
        assert started["running"] is True
    finally:
        assert json.loads(icecomb(*lake, "stop", uri=None)[1])["stopped"] is True
    assert json.loads(icecomb(*lake, "status", uri=None)[1])["running"] is False
    assert json.loads(icecomb(*lake, "stop", uri=None)[1])["stopped"] is False


def test_an_interrupt_ends_quietly_with_130() -> None:
    # a process that a shell started in the background ignores SIGINT, and so do its children
    main = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from icecomb.catalog.cli import main; sys.exit(main())"
    )
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"thrift://127.0.0.1:{silent.getsockname()[1]}"
        with subprocess.Popen(
            [sys.executable, "-c", main, "--uri", uri, "namespaces"],
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                with silent.accept()[0] as caller:
                    caller.recv(100)
                    process.send_signal(signal.SIGINT)
                    out, err = process.communicate(timeout=300)
            finally:
                process.kill()
    assert (process.returncode, out, err.strip()) == (130, "", "error: interrupted")


def test_a_reader_that_leaves_early_makes_no_noise(metastore: Any, orders: str) -> None:
    main = "import sys; from icecomb.catalog.cli import main; sys.exit(main())"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", main, "--uri", metastore.uri, "describe", orders],
        cwd="/",
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_progress_shows_count_rate_and_remaining_time() -> None:
    assert line("reading", 0, 2000, "files", 0) == "reading: 0 of 2,000 files"
    assert line("reading", 500, 2000, "files", 10) == "reading: 500 of 2,000 files, 50/s, 30 s left"
    assert line("reading", 2, 10, "files", 8) == "reading: 2 of 10 files, 0.25/s, 32 s left"
    assert line("reading", 10, 10, "files", 65) == "reading: 10 of 10 files, 0.15/s, 1 min 05 s"
    assert duration(4321) == "1 h 12 min"


def test_progress_is_silent_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    progress = TerminalProgress()
    with progress.task("reading", 3, "files") as advance:
        advance(3)
    progress.say("done")
    assert capfd.readouterr() == ("", "")


def test_progress_on_a_terminal_is_live() -> None:
    import io

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with TerminalProgress(stream).task("reading", 3, "files") as advance:
        advance(1)
        advance(2)
    assert "3 of 3 files" in stream.getvalue()
