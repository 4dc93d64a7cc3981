"""The forms of lists and facts: text for awk, JSON, and CSV that a spreadsheet does not run."""

from __future__ import annotations

import codecs
import csv
import datetime as dt
import io
import json
import re
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import cli, load_catalog
from icecomb.catalog.cli.output.output import FORMS, CsvOutput, JsonOutput, TextOutput
from icecomb.format.errors import FileIOError
from tests.rings import sampled

HOSTILE = [
    "a\nb",
    "tab\there",
    "\x1b[2J",
    "back\\slash",
    "two  spaces",
    'quote", comma',
    "\u202e",
    "",
]


@pytest.fixture
def icecomb(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Runs a command on a catalog of folders with a table `db.t` of hostile text."""
    monkeypatch.setenv("ICECOMB_CATALOG__FILES__TYPE", "hadoop")
    monkeypatch.setenv("ICECOMB_CATALOG__FILES__WAREHOUSE", str(tmp_path / "lake"))
    lake = load_catalog("files")
    lake.create_namespace("db")
    rows = pa.table({"id": range(len(HOSTILE)), "what\x1b[2J": HOSTILE})
    lake.create_table("db.t", rows.schema).append(rows)

    def run(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = cli.main(["--catalog", "files", *arguments])
        return code, *capfd.readouterr()

    return run


def unescaped(cell: str) -> str:
    """A cell as the page says to read it back."""
    return re.sub(
        r"\\(?:\\|[nrt]|x..|u....|U........)",
        lambda found: codecs.decode(found[0], "unicode_escape"),
        cell,
    )


def test_hostile_text_is_a_line_and_a_column_of_text_and_comes_back_from_csv(icecomb: Any) -> None:
    code, out, err = icecomb("head", "db.t")
    assert (code, err, len(out.splitlines())) == (0, "", 1 + len(HOSTILE))
    cells = [re.split("  +", line)[1:] for line in out.split("\n")[1:-1]]
    assert [unescaped(cell[0]) if cell else "" for cell in cells] == HOSTILE
    code, out, err = icecomb("head", "db.t", "--output", "csv")
    assert (code, err, out.count("\n")) == (0, "", 1 + len(HOSTILE))
    header, *rows = csv.reader(io.StringIO(out))
    assert header == ["id", "what\\x1b[2J"]
    assert [unescaped(row[1]) for row in rows] == HOSTILE
    assert [
        row["what\x1b[2J"] for row in json.loads(icecomb("head", "db.t", "--output", "json")[1])
    ] == HOSTILE


def test_awk_finds_the_columns_of_text(capfd: pytest.CaptureFixture[str]) -> None:
    TextOutput().table(["name", "said", "n"], [["x", "of  two\n", 1], ["a name", "", 22]])
    out = capfd.readouterr().out
    # an empty cell is the one thing that only its column's width tells
    awk = ["awk", "-F", "  +", '{print $1 "|" $2}']
    found = subprocess.run(awk, input=out, capture_output=True, text=True, check=True).stdout
    assert found.splitlines() == ["NAME|SAID", "x|of \\x20two\\n", "a name|22"]


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\uff1d1", '=HYPERLINK("x")'])
def test_a_text_that_a_spreadsheet_would_run_is_escaped_and_comes_back(
    text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    CsvOutput().table([text], [[text], [{"nested": text}]])
    (header,), (cell,), (nested,) = csv.reader(io.StringIO(capfd.readouterr().out))
    assert header == cell
    assert cell[0] == "\\"
    assert unescaped(cell) == text
    assert json.loads(nested) == {"nested": text}


def test_numbers_dates_and_lone_signs_of_csv_are_as_they_are(
    capfd: pytest.CaptureFixture[str],
) -> None:
    row = [-1, -1.5, Decimal("-2.50"), "-7", "+1.5e-3", "-", None, "", True, b"\x01", [1, "a"]]
    CsvOutput().table([f"c{at}" for at in range(len(row))], [row])
    _, found = csv.reader(io.StringIO(capfd.readouterr().out))
    assert found == [
        "-1",
        "-1.5",
        "-2.50",
        "-7",
        "+1.5e-3",
        "-",
        "",
        "",
        "true",
        "0x01",
        '[1, "a"]',
    ]
    CsvOutput().facts(
        {"at": dt.datetime(2024, 5, 1, 12, tzinfo=dt.timezone.utc), "day": dt.date.min}
    )
    assert capfd.readouterr().out == "at,day\n2024-05-01T12:00:00+00:00,0001-01-01\n"


def test_facts_of_several_things_are_a_line_each_with_the_names_of_all(
    capfd: pytest.CaptureFixture[str],
) -> None:
    things = [{"a": 1, "b": {"x": [1]}}, {"a": 2, "c": "d"}]
    CsvOutput().documents(iter(things))
    assert list(csv.reader(io.StringIO(capfd.readouterr().out))) == [
        ["a", "b", "c"],
        ["1", '{"x": [1]}', ""],
        ["2", "", "d"],
    ]
    CsvOutput().lines(["for people"])
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("text", [*HOSTILE, "\x0b\x0c\x1c\x85\u2028\u2029"])
def test_json_is_what_pythons_own_writer_makes_of_the_rows(
    text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for rows in ([], [[1, text]], [[1, [text]], [2, {"x": {text: None}}]]):
        JsonOutput().table(["n", "what"], iter(rows))
        out = capfd.readouterr().out
        documents = [dict(zip(["n", "what"], row, strict=True)) for row in rows]
        assert json.loads(out) == documents
        assert len(out.splitlines()) == len(json.dumps(documents, indent=2).splitlines())


@pytest.mark.parametrize("form", FORMS)
def test_a_long_list_is_printed_to_people_as_it_comes(
    form: str, capfd: pytest.CaptureFixture[str]
) -> None:
    printed = []

    def rows() -> Any:
        for at in range(3000):
            if at % 1500 == 0:
                printed.append(len(capfd.readouterr().out))
            yield [at, "x" * (at // 1000)]

    FORMS[form]().table(["n", "x"], rows())
    assert printed[0] == 0
    assert (printed[1] > 0) == (form == "text")  # programs get all or nothing
    assert "2999" in capfd.readouterr().out


@pytest.mark.parametrize("form", FORMS)
def test_a_list_that_fails_at_its_first_row_prints_nothing(
    form: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ZeroDivisionError):
        FORMS[form]().table(["n"], ([1 // at] for at in range(3)))
    assert capfd.readouterr().out == ""


def test_output_is_taken_before_and_behind_every_command(icecomb: Any) -> None:
    before, behind = (icecomb("--output", "csv", "tables"), icecomb("tables", "--output", "csv"))
    assert before == behind == (0, "table\ndb.t\n", "")
    assert icecomb("--output", "json", "tables", "--output", "csv") == before
    code, out, _ = icecomb("maintain", "expire-snapshots", "db.t", "--output", "csv")
    (row,) = csv.DictReader(io.StringIO(out))
    assert (code, row["table"], row["dry_run"]) == (0, "db.t", "true")
    assert icecomb("tables", "--output", "xml")[0] == 2


@pytest.mark.parametrize(
    "command",
    [
        ("namespaces",),
        ("tables",),
        ("describe", "db.t"),
        ("head", "db.t"),
        ("snapshots", "db.t"),
        ("doctor",),
        ("drop", "db.t", "--purge"),
        ("maintain", "expire-snapshots", "db.t"),
        ("maintain", "rewrite-manifests", "db.t"),
        ("maintain", "rewrite-data-files", "db.t", "--dry-run"),
        ("maintain", "rewrite-data-files", "db.t"),
        ("health", "db.t"),
        *((name, "db.t") for name in ("history", "files", "partitions", "manifests", "refs")),
        ("schema", "db.t"),
        ("properties", "db.t"),
        ("diff", "db.t", "main"),
        ("diff", "db.t", "main", "--files"),
        ("tag", "list", "db.t"),
        ("tag", "create", "db.t", "new"),
        ("maintain", "remove-orphan-files", "db.t"),
        ("maintain", "empty-quarantine", "db.t", "--older-than", "1d"),
    ],
    ids=" ".join,
)
def test_csv_of_a_command_is_one_list(icecomb: Any, command: tuple[str, ...]) -> None:
    code, out, _ = icecomb(*command, "--output", "csv")
    header, *rows = csv.reader(io.StringIO(out))
    assert code == 0
    assert {len(row) for row in rows} <= {len(header)}
    assert len(set(header)) == len(header)


@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize(
    "rows", [0, 1, 2, pytest.param(40_000, marks=pytest.mark.gate("writes 80 MB"))]
)
def test_a_list_that_fails_prints_nothing_for_programs(
    form: str, rows: int, capfd: pytest.CaptureFixture[str]
) -> None:
    def failing() -> Any:
        yield from ([n, "x" * 1000] for n in range(rows))
        raise OSError("half way")

    output = FORMS[form]()
    with pytest.raises(OSError, match="half way"):
        output.table(["id", "text"], failing())
    assert capfd.readouterr().out == ""
    with pytest.raises(OSError, match="half way"):
        output.documents(dict(zip(("id", "text"), row, strict=True)) for row in failing())
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_disk_without_room_for_a_list_is_named_and_nothing_is_printed(
    form: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
        with pytest.raises(FileIOError, match=r"Cannot keep the output in .*gone: No such file"):
            FORMS[form]().table(["a"], (["x" * 1000] for _ in range(17_000)))
    assert not capfd.readouterr().out


@pytest.mark.gate("starts a process")
@pytest.mark.parametrize("form", sampled(["csv", "json"], keep=1))
def test_a_command_that_finds_a_damaged_manifest_half_way_prints_no_half_list(
    form: str, icecomb: Any, tmp_path: Path
) -> None:
    lake = load_catalog("files")
    table = lake.load_table("db.t")
    table.append(table.scan().to_arrow())
    oldest = min((tmp_path / "lake").rglob("*-m0.avro"), key=lambda path: path.stat().st_mtime_ns)
    oldest.write_bytes(b"Obj\x01" + oldest.read_bytes()[400:])
    main = "import sys; from icecomb.catalog.cli import main; sys.exit(main())"
    arguments = ["--catalog", "files", "--output", form, "files", "db.t"]
    found = subprocess.run(  # another process has not read the manifests yet
        [sys.executable, "-c", main, *arguments], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout) == (1, "")
    assert oldest.name in found.stderr
