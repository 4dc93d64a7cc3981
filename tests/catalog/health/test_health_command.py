"""`icecomb health`: its forms, its order and its exit codes."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from icecomb.catalog import cli
from icecomb.catalog.cli.application import Application
from icecomb.catalog.cli.output.progress import TerminalProgress
from icecomb.catalog.cli.report.health_report import show_tables
from icecomb.catalog.health.table_health import TableHealth
from tests.catalog.health.made_table import (
    GB,
    MB,
    append,
    data,
    delete,
    equality,
    lake_in,
    new_table,
)


@pytest.fixture
def health(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Any:
    """Runs `icecomb health` on a catalog of folders: exit code, stdout, stderr."""
    monkeypatch.setenv("ICECOMB_CATALOG__LAKE__TYPE", "hadoop")
    monkeypatch.setenv("ICECOMB_CATALOG__LAKE__WAREHOUSE", str(tmp_path))

    def run(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = cli.main(["--catalog", "lake", "health", *arguments])
        return code, *capfd.readouterr()

    return run


@pytest.fixture
def tables(tmp_path: Path) -> None:
    append(new_table(tmp_path, "well"), data(GB))
    append(new_table(tmp_path, "warned"), *(data(MB) for _ in range(5)))
    ill = append(new_table(tmp_path, "ill"), *(data(GB, 1000) for _ in range(12)))
    delete(ill, *(equality(1200) for _ in range(10)))


@pytest.mark.usefixtures("tables")
def test_the_worst_table_comes_first_and_its_findings_follow(health: Any) -> None:
    code, out, _ = health("db.*")
    assert code == 3
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["TABLE", "db.ill", "db.warned", "db.well"]
    assert lines[1].split()[1] == "12"
    assert out.index("  problem equality-deletes") < out.index("  warning small-files")
    assert lines[-1] == "3 tables: 1 problem, 1 warning"


@pytest.mark.usefixtures("tables")
def test_one_table_is_shown_in_full(health: Any) -> None:
    code, out, _ = health("db.well")
    assert code == 0
    assert re.search(r"^files: +1$", out, re.MULTILINE)
    assert "nothing found" in out


@pytest.mark.usefixtures("tables")
def test_exit_codes_are_those_of_the_worst(health: Any, tmp_path: Path) -> None:
    assert health("db.well")[0] == health("db.warned")[0] == 0
    assert health("db.ill", "db.well")[0] == 3
    code, out, _ = health("db.ill", "db.nope")
    assert (code, "unreadable" in out) == (1, True)
    assert health("nope.*")[0] == 1
    assert health("--jobs", "0")[0] == 2
    assert health(str(tmp_path / "db/warned"), "db.well")[0] == 0


@pytest.mark.usefixtures("tables")
def test_without_names_all_tables_are_looked_at(health: Any) -> None:
    found = json.loads(health("--output", "json")[1])
    assert [one["table"] for one in found] == ["db.ill", "db.warned", "db.well"]
    (deletes,) = found[0]["findings"]
    assert deletes.keys() == {"code", "severity", "message", "evidence", "command"}
    assert (deletes["code"], deletes["severity"]) == ("equality-deletes", "problem")
    assert found[0]["facts"]["equality_deletes"] == 12_000


@pytest.mark.usefixtures("tables")
def test_the_global_form_is_heard(health: Any, capfd: pytest.CaptureFixture[str]) -> None:
    wanted = health("db.ill", "--output", "json")[1]
    assert cli.main(["--catalog", "lake", "--output", "json", "health", "db.ill"]) == 3
    assert capfd.readouterr().out == wanted


@pytest.mark.usefixtures("tables")
def test_csv_has_a_line_a_finding_and_one_for_a_table_without(health: Any) -> None:
    rows = list(csv.DictReader(health("--output", "csv", "db.*", "db.nope")[1].splitlines()))
    assert [(row["table"], row["code"]) for row in rows] == [
        ("db.nope", ""),
        ("db.ill", "equality-deletes"),
        ("db.warned", "small-files"),
        ("db.well", ""),
    ]
    assert "There is no table" in rows[0]["error"]
    assert (rows[1]["severity"], rows[1]["files"]) == ("problem", "12")


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What Prometheus reads of its text format (version 0.0.4)."""
    found, typed = {}, set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            assert kind == "gauge"
            assert name not in typed
            typed.add(name)
        if line.startswith("#"):
            continue
        match = re.fullmatch(r'([a-z_]+)\{((?:\w+="(?:[^"\\]|\\[\\"n])*",?)+)\} (\S+)', line)
        assert match, line
        name, inner, value = match.groups()
        assert name in typed
        labels = tuple(
            (key, re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text))
            for key, text in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', inner)
        )
        assert (name, labels) not in found
        found[name, labels] = float(value)
    return found


@pytest.mark.usefixtures("tables")
def test_prometheus_reads_gauges(health: Any) -> None:
    code, out, _ = health("--output", "prometheus", "db.*", "db.nope")
    found = samples(out)
    assert code == 1
    ill = (("table", "db.ill"),)
    assert found["icecomb_table_bytes", ill] == 12 * GB
    assert found["icecomb_table_files", ill] == 12
    assert found["icecomb_table_readable", ill] == 1
    assert found["icecomb_table_readable", (("table", "db.nope"),)] == 0
    key = (*ill, ("code", "equality-deletes"), ("severity", "problem"))
    assert found["icecomb_table_health_findings", key] == 1
    assert ("icecomb_table_files", (("table", "db.nope"),)) not in found


HOSTILE = ["it's", 'q"uote', "new\nline", "esc\x1b[2J", "<script>", "x" * 200, "\u202eback", "a,b"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_names_in_every_form(tmp_path: Path, health: Any, name: str) -> None:
    table = append(new_table(tmp_path, "t"), *(data(MB) for _ in range(5)))
    lake = lake_in(tmp_path)
    append(lake.create_table(("db", name), table.schema()), *(data(MB) for _ in range(5)))
    for form in ("text", "csv", "prometheus"):
        code, out, _ = health("db.*", "--output", form)
        assert code == 0
        assert all(line.isprintable() for line in out.splitlines())
    assert samples(out)["icecomb_table_files", (("table", printed(f"db.{name}")),)] == 5
    found = json.loads(health("db.*", "--output", "json")[1])
    assert {one["table"] for one in found} == {"db.t", f"db.{name}"}


def printed(name: str) -> str:
    """A label's value: a new line stays one, what else is obeyed is shown escaped."""
    return name.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")


def test_commands_carry_the_options_that_name_the_catalog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a lake"
    properties = {"commit.manifest.min-count-to-merge": "2"}
    table = append(append(new_table(folder, **properties), data(GB)), data(GB))
    monkeypatch.setenv("ICECOMB_CATALOG__FILES__TYPE", "hadoop")
    place = ["--catalog", "files", "--warehouse", str(folder)]
    assert cli.main([*place, "health", "db.t", "--output", "json"]) == 0
    ((found,),) = [one["findings"] for one in json.loads(capfd.readouterr().out)]
    words = shlex.split(found["command"])
    assert words == ["icecomb", *place, "maintain", "rewrite-manifests", "db.t"]
    assert cli.main(words[1:]) == 0
    assert len(table.refresh().inspect.manifests()) == 1


def test_a_name_of_ten_thousand_letters_does_not_push_the_list_away(
    capfd: pytest.CaptureFixture[str],
) -> None:
    long = TableHealth("x" * 10_000)
    application = Application(None, None, None, "text", TerminalProgress())
    show_tables(application, [long, TableHealth("db.t", error="no")], [])
    lines = capfd.readouterr().out.splitlines()
    assert len(lines[1]) < len(lines[2]) + 130 < 400
    assert "x" * 10_000 not in lines, "it is well, and shown in no detail"
