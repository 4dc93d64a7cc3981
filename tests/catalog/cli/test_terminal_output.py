"""Other people's text on a terminal: control sequences and marks of direction are never sent."""

from __future__ import annotations

import ast
import json
import logging
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import cli, load_catalog
from icecomb.catalog.cli import application as application_module
from icecomb.catalog.cli.application import Application
from icecomb.catalog.cli.output.output import TextOutput
from icecomb.catalog.cli.output.progress import TerminalProgress
from icecomb.format.printable_text import printable

CLEAR, TITLE, C1 = "\x1b[2J", "\x1b]0;owned\x07", "\x9b31m"
ATTACK = f"{CLEAR}{TITLE}{C1}\x7f\u202eevil\u2066\u200f\x00\r\x08"
LEGITIMATE = (
    "Zürich, 東京, \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645, 👩\u200d💻, 1\u00a0000"
)


def obeyed(text: str) -> set[str]:
    """What a terminal would obey or hide, by Unicode's own categories; line ends are ours."""
    kinds = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return {c for c in text if unicodedata.category(c) in kinds and c not in "\n\u200c\u200d"}


@pytest.fixture
def icecomb(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Runs a command on a catalog of folders with a table `db.t` full of bad text."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ICECOMB_CATALOG__FILES__TYPE", "hadoop")
    monkeypatch.setenv("ICECOMB_CATALOG__FILES__WAREHOUSE", str(tmp_path / "lake"))
    lake = load_catalog("files")
    lake.create_namespace("db")
    rows = pa.table(
        {
            "name": [ATTACK, LEGITIMATE],
            f"col{CLEAR}": ["x", "y"],
            "many": [[ATTACK], [LEGITIMATE]],
        }
    )
    lake.create_table("db.t", rows.schema, properties={f"k{TITLE}": ATTACK}).append(rows)

    def run(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = cli.main(["--catalog", "files", *arguments])
        return code, *capfd.readouterr()

    return run


@pytest.mark.parametrize("command", [("head", "db.t"), ("describe", "db.t"), ("tables",)])
def test_rows_columns_and_properties_are_shown_and_not_obeyed(icecomb, command):
    for form in ("text", "json", "csv"):
        code, out, err = icecomb("--output", form, *command)
        assert (code, obeyed(out + err)) == (0, set())
        if command[0] != "tables":
            assert "evil" in out


def test_text_that_is_only_unusual_is_shown_as_it_is(icecomb):
    assert LEGITIMATE in icecomb("head", "db.t")[1]
    assert printable(LEGITIMATE) == LEGITIMATE


def test_json_is_still_the_same_document(icecomb):
    _, out, _ = icecomb("--output", "json", "head", "db.t")
    assert [row["name"] for row in json.loads(out)] == [ATTACK, LEGITIMATE]
    _, out, _ = icecomb("--output", "json", "describe", "db.t")
    assert json.loads(out)["properties"][f"k{TITLE}"] == ATTACK


@pytest.mark.parametrize(
    "arguments",
    [
        ("head", f"db.{CLEAR}\u202e"),
        ("describe", f"{C1}.t"),
        (f"fly{CLEAR}",),
        ("head", "db.t", "--where", f"name{TITLE} = 1"),
        ("head", "db.t", "--columns", f"x{CLEAR}\u202e"),
        ("head", f"/no/{CLEAR}"),
        ("--catalog", f"no{CLEAR}", "tables"),
    ],
)
def test_messages_and_hints_are_not_obeyed(icecomb, arguments):
    code, out, err = icecomb(*arguments)
    assert code != 0
    assert (obeyed(out + err), err.startswith("error: ")) == (set(), True)


def test_an_error_of_no_kind_of_ours_is_not_obeyed(icecomb, monkeypatch):
    def fail(*_: Any) -> None:
        raise RuntimeError(ATTACK)

    monkeypatch.setattr(Application, "catalog", fail)
    _, out, err = icecomb("tables")
    assert (obeyed(out + err), "evil" in err) == (set(), True)


def test_what_is_told_beside_the_data_is_not_obeyed(capfd):
    output = TextOutput()
    output.lines([f"warning {ATTACK}"])
    output.facts({f"name{CLEAR}": ATTACK, "list": [ATTACK], f"map{CLEAR}": {ATTACK: ATTACK}})
    output.table([ATTACK], [[ATTACK], [b"\x1b"], [{ATTACK: [ATTACK]}]])
    Application(None, None, None, "text", TerminalProgress()).warn(ATTACK)
    out, err = capfd.readouterr()
    assert obeyed(out + err) == set()
    assert "\\x1b[2J" in out
    assert "\\x1b[2J" in err


def test_progress_is_drawn_but_names_in_it_are_not_obeyed():
    import io

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    progress = TerminalProgress(stream)
    progress.say(f"{TITLE}{CLEAR}\u202e")
    with progress.task(f"reading {TITLE}{CLEAR}\u202e", 1, "files") as advance:
        advance(1)
    assert not any(bad in stream.getvalue() for bad in (TITLE, CLEAR, "\u202e"))
    assert "\\x1b]0;owned\\x07" in stream.getvalue()


def test_every_print_of_the_command_line_goes_one_way():
    folder = Path(application_module.__file__).parent
    printing = set()
    for module in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            match node:
                case (
                    ast.Call(func=ast.Name(id="print"))
                    | ast.Call(func=ast.Attribute(attr="echo" | "secho" | "print"))
                ):
                    printing.add(module.name)
    assert printing == {"terminal.py"}


def test_warnings_and_traces_are_shown_and_not_obeyed(icecomb, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])

    def failing(*_: Any, **__: Any) -> None:
        logging.getLogger("pyhdfs").warning("%s", ATTACK, exc_info=ValueError(ATTACK))
        raise RuntimeError(ATTACK)

    monkeypatch.setattr(Application, "catalog", property(failing))
    code, out, err = icecomb("tables")
    assert (code, obeyed(out + err)) == (1, set())
    assert err.count("evil") == 3
    monkeypatch.setenv("ICECOMB_TRACE", "1")
    code, out, err = icecomb("tables")
    assert (code, obeyed(out + err)) == (1, set())
    assert "Traceback" in err
    assert "in failing" in err
    assert logging.getLogger().handlers == []


def test_blanks_in_a_quoted_name_of_a_hint_stay(capfd):
    application_module._complain("one\n  two", "icecomb doctor 'a  b'\n   or not", 1)
    assert capfd.readouterr().err == "error: one two\n  hint: icecomb doctor 'a  b' or not\n"
