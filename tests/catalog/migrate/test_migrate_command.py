from __future__ import annotations

import csv
import importlib.util
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.catalog.numbered_rows import numbers

KILLED_CALL = "alter_table_with_environment_context"


@pytest.fixture
def proxy(metastore: Any) -> Any:
    place = Path(__file__).parent.parent / "thrift_proxy.py"
    spec = importlib.util.spec_from_file_location("thrift_proxy_of_migrate", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.ThriftProxy(metastore.port)
    yield made
    made.close()


def test_the_whole_way_there_and_back_by_commands(make_hive_table: Any, run: Any) -> None:
    table = make_hive_table(
        {"id": "bigint"}, {"k": "int"}, {("1",): numbers(1, 2), ("2",): numbers(3)}
    )
    before = table.state
    code, out, err = run("plan", table.name)
    assert (code, err) == (0, "")
    assert "verdict:         ready" in out
    code, out, _ = run("apply", table.name, form="json")
    assert (code, json.loads(out)["rows"]) == (0, 3)
    code, out, _ = run("verify", table.name)
    assert code == 0
    assert "equal: 6 values of 3 rows in 2 files" in out
    code, out, err = run("revert", table.name)
    assert (code, err) == (0, "dry run: add --yes to do it\n")
    assert table.entry.is_iceberg
    assert run("revert", table.name, "--yes")[0] == 0
    assert table.state == before
    assert "state:       reverted" in run("status", table.name)[1]


def test_properties_of_the_table_are_given_to_commands(make_hive_table: Any, run: Any) -> None:
    table = make_hive_table(
        {"id": "bigint"}, rows=numbers(1, 2), parameters={"format-version": "1"}
    )
    wanted = (
        "--property",
        "format-version=3",
        "--property",
        "write.parquet.compression-codec=gzip",
    )
    code, out, _ = run("plan", table.name, *wanted, form="json")
    told = [
        one["message"] for one in json.loads(out)["findings"] if one["code"] == "format-version"
    ]
    assert code == 0
    assert any("parameter format-version=1 does not count" in message for message in told)
    assert len(told) == 2
    assert run("apply", table.name, *wanted)[0] == 0
    loaded = table.catalog.load_table(table.name)
    assert loaded.metadata.format_version == 3
    assert loaded.properties["write.parquet.compression-codec"] == "gzip"
    assert run("verify", table.name)[0] == 0
    for wrong in ("format-version", "=3"):
        assert run("plan", table.name, "--property", wrong)[0] == 2
    code, _, err = run("plan", table.name, *wanted, "--property", "format-version=2")
    assert (code, "format-version is given twice" in err) == (2, True)


def test_csv_has_what_json_has(make_hive_table: Any, run: Any) -> None:
    keys = {("1",): numbers(1, 2), ("2",): numbers(3)}
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, keys)
    bad = make_hive_table({"id": "bigint", "u": "uniontype<int>"})

    def lines(*words: str) -> list[dict[str, str]]:
        header, *rows = csv.reader(io.StringIO(run(*words, form="csv")[1]))
        assert {len(row) for row in rows} == {len(header)}
        return [dict(zip(header, row, strict=True)) for row in rows]

    (blocker,) = [row for row in lines("plan", bad.name) if row["severity"] == "blocker"]
    found = json.loads(run("plan", bad.name, form="json")[1])["findings"]
    assert blocker["code"] in {one["code"] for one in found}
    assert [row["rows"] for row in lines("apply", table.name)] == ["3"]
    (status,) = lines("status", table.name)
    assert status["state"] == json.loads(run("status", table.name, form="json")[1])["state"]
    compared = json.loads(run("verify", table.name, form="json")[1])
    figures = {
        (row["what"], row["name"], row["figure"]): (row["hive"], row["iceberg"])
        for row in lines("verify", table.name)
    }
    expected = {("table", "", "rows"): ("3", "3")}
    for part in compared["partitions"]:
        counts = (str(part["hive-rows"]), str(part["iceberg-rows"]))
        expected["partition", part["partition"], "rows"] = counts
    for column in compared["columns"]:
        for figure in ("nulls", "min", "max"):
            values = (str(column["hive"][figure]), str(column["iceberg"][figure]))
            expected["column", column["column"], figure] = values
    assert figures == expected
    outcomes = lines("verify", table.name, bad.name)
    assert [row["outcome"] for row in outcomes] == ["done", "failed"]
    assert outcomes[1]["hint"]


def test_a_dry_run_of_finalize_refuses_what_finalize_refuses(
    make_hive_table: Any, run: Any
) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)})
    code, _, err = run("apply", table.name)
    assert code == 0
    assert "INSERT OVERWRITE in Spark goes on as before in icecomb's catalogs" in err
    code, _, err = run("finalize", table.name)
    assert code == 0
    assert "finalize keeps the property" in err
    assert run("revert", table.name, "--yes")[0] == 0
    for choice in ((), ("--yes",)):
        code, out, err = run("finalize", table.name, *choice)
        assert (code, out) == (1, "")
        assert "has no finished migration" in err


def test_a_blocked_plan_and_apply_are_exit_code_3(make_hive_table: Any, run: Any) -> None:
    table = make_hive_table(
        {"id": "bigint"}, {"k": "int"}, {("x",): numbers(1), ("y",): numbers(1)}
    )
    before = table.state
    code, out, _ = run("plan", table.name)
    assert code == 3
    assert "blocker: 2 partition values" in out
    code, out, err = run("apply", table.name)
    assert (code, out) == (3, "")
    assert err.startswith(f"error: {table.name} cannot be migrated: 2 partition values")
    assert len(err.splitlines()) == 2
    assert table.state == before


def test_a_whole_database_is_planned_at_once(make_hive_table: Any, run: Any) -> None:
    good = make_hive_table({"id": "bigint"}, rows=numbers(1))
    bad = make_hive_table({"id": "bigint", "u": "uniontype<int>"})
    code, out, _ = run("plan", good.name, bad.name, form="json")
    verdicts = {row["table"]: row["verdict"] for row in json.loads(out)}
    assert (code, verdicts) == (3, {good.name: "ready", bad.name: "blocked"})
    code, out, _ = run("plan", "made.*", "--quick", form="json")
    assert verdicts.items() <= {row["table"]: row["verdict"] for row in json.loads(out)}.items()


def test_a_pattern_that_no_table_matches_is_an_error(
    make_hive_table: Any, run: Any, catalog: Any, namespace: str
) -> None:
    good = make_hive_table({"id": "bigint"}, rows=numbers(1))
    for pattern, message in (
        ("nope.*", "There is no namespace nope"),
        (f"{namespace}.*", f"No table matches {namespace}.*: namespace {namespace} is empty"),
    ):
        for names in ((pattern,), (good.name, pattern)):
            code, out, err = run("plan", *names)
            assert (code, out) == (1, "")
            assert err.startswith(f"error: {message}\n")


def test_differences_are_exit_code_3(make_hive_table: Any, run: Any) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)})
    run("apply", table.name)
    shutil.copy(table.folder / "p0" / "part-0.parquet", table.folder / "p0" / "new.parquet")
    code, out, _ = run("verify", table.name)
    assert code == 3
    assert "1 differences" in out


def test_losing_rows_needs_to_be_said_and_is_exit_code_3(make_hive_table: Any, run: Any) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)})
    before = table.state
    run("apply", table.name)
    table.catalog.load_table(table.name).append(
        pa.table({"id": pa.array([9], pa.int64()), "k": pa.array([9], pa.int32())})
    )
    code, out, err = run("revert", table.name)
    assert (code, err) == (3, "dry run: add --yes --allow-data-loss to do it\n")
    assert '"added-rows": "1"' in out
    code, _, err = run("revert", table.name, "--allow-data-loss")
    assert (code, err) == (0, "dry run: add --yes --allow-data-loss to do it\n")
    code, out, err = run("revert", table.name, "--yes")
    assert code == 3
    assert "would lose 1 snapshots" in err
    assert "added-rows" in out
    assert len(table.rows()) == 2
    assert run("revert", table.name, "--yes", "--allow-data-loss")[0] == 0
    assert table.state == before


@pytest.mark.full("lost answers of a migration are in the gate's faults")
def test_a_lost_answer_to_the_turn_is_settled_or_exit_code_4(
    make_hive_table: Any, run: Any, proxy: Any
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    before = table.state
    # the first two find out whether the server checks what it replaces
    proxy.fail(KILLED_CALL, "request", passing=2)
    code, out, err = run("apply", table.name, uri=proxy.uri)
    assert (code, out) == (4, "")
    assert "it is unknown whether it became an Iceberg table" in err
    assert table.state == before
    proxy.fail(KILLED_CALL, "reply", passing=2)
    assert run("apply", table.name, uri=proxy.uri)[0] == 0
    assert table.rows() == [{"id": 1}]


def test_a_folder_that_cannot_be_written_is_one_line_and_changes_nothing(
    make_hive_table: Any, run: Any
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    (table.folder / "_icecomb_migration").touch()
    before, files = table.state, sorted(table.folder.rglob("*"))
    code, out, err = run("apply", table.name)
    assert (code, out) == (1, "")
    assert len(err.splitlines()) <= 2
    assert (table.state, sorted(table.folder.rglob("*"))) == (before, files)


def test_a_damaged_journal_is_named(make_hive_table: Any, run: Any) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    run("apply", table.name)
    (journal,) = (table.folder / "_icecomb_migration").rglob("journal.json")
    journal.write_text("{")
    for command in (
        ("revert", table.name, "--yes"),
        ("status", table.name),
        ("verify", table.name),
    ):
        code, out, err = run(*command)
        assert (code, out) == (1, "")
        assert str(journal) in err
    assert table.rows() == [{"id": 1}]


def test_a_choice_of_timestamps_is_an_option(make_hive_table: Any, run: Any) -> None:
    data = pa.table({"ts": pa.array([0], pa.timestamp("us"))})
    table = make_hive_table({"ts": "timestamp"}, rows=data)
    pq.read_table(table.folder / "part-0.parquet")
    assert run("apply", table.name)[0] == 3
    code, out, _ = run("apply", table.name, "--timestamp", "timestamp", form="json")
    assert (code, json.loads(out)["rows"]) == (0, 1)


def test_a_table_that_is_one_already_is_nothing_to_do(
    catalog: Any, namespace: str, run: Any
) -> None:
    """A job that made it, or migrated it by other means, may run again."""
    for name in ("own", "other"):
        catalog.create_table(f"{namespace}.{name}", numbers(1).schema)
    code, out, err = run("apply", f"{namespace}.own", form="json")
    assert (code, json.loads(out)) == (0, {"table": f"{namespace}.own", "already": True})
    assert err.endswith(
        "is an Iceberg table already, and not by icecomb's migration: nothing to do\n"
    )
    code, out, _ = run("apply", f"{namespace}.own", f"{namespace}.other", form="json")
    assert code == 0
    assert out.count('"already": true') == 2
