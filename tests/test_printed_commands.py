"""What is printed to be pasted runs nothing: names, paths and types of others stay words of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import click
import pytest
from rich.console import Console

from icecomb.catalog.cli.application import Application, icecomb as program
from icecomb.catalog.cli.output.progress import TerminalProgress
from icecomb.catalog.health.table_health import HealthFinding
from icecomb.catalog.hive.engine import _set
from icecomb.catalog.hive.pointer import pointed_at
from icecomb.catalog.hive.thrift.answer import _no_table
from icecomb.catalog.hive.thrift.constraints import Constraint
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable, StorageDescriptor
from icecomb.catalog.migrate.applying.migration import MigrationBlockedError
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal.context import being_reverted
from icecomb.catalog.migrate.journal.late_write import LateWrites
from icecomb.catalog.migrate.journal.overwritten_entry import OverwrittenEntry
from icecomb.catalog.migrate.planning.migration_plan import failed_plan
from icecomb.catalog.migrate.planning.obstacle import add_statement, drop_statement, table_findings
from icecomb.catalog.migrate.reverting.present_state import PresentState
from icecomb.catalog.migrate.source.copy_statement import copy_remedy, hive_copy_remedy
from icecomb.catalog.migrate.source.source import spark_findings
from icecomb.catalog.report.finding import Severity
from icecomb.format.errors import IcecombError
from icecomb.format.property.way_back import check_way_back_kept, deletion_remedy
from icecomb.format.shell_command import quoted_word
from icecomb.format.sql_statement import printed_name, printed_text
from icecomb.spark.demo.demonstration import Demo

ROOTS = [Path(__file__).parents[1] / floor for floor in ("format", "catalog", "spark")]
HOSTILE = [
    "a$(touch x)",
    "a`touch x`",
    "a; touch x",
    "a'; touch x; '",
    'a"; touch x; "',
    "a\n touch x\n",
    "a\\\n touch x",
    "a\x1b]0;touch x\x07",
    "a && touch x || 'touch x'",
]
"""Names; each would run `touch x` in a shell that took it for more than a word."""


def entry(name: str, location: str = "", **given: str) -> HiveTable:
    columns = (FieldSchema(name, f"struct<{name}:int>"),)
    serde = {"path": f"/elsewhere/{name}"}
    return HiveTable(
        "db",
        name,
        storage=StorageDescriptor(
            columns=columns, location=location or f"/lake/{name}", serde_parameters=serde
        ),
        partition_keys=(),
        parameters=given,
    )


def hints(name: str) -> Iterator[str]:
    """What is printed about a table of this name, at as many places as need no server."""
    table = entry(name)
    full = table.full_name
    try:
        pointed_at(table)
    except IcecombError as error:
        yield error.hint or ""
    yield _no_table(name, "t").hint or ""
    yield being_reverted(table).hint or ""
    yield OverwrittenEntry(full, f"/lake/{name}", finalized=True).error.hint or ""
    yield OverwrittenEntry(full, None, finalized=False).error.hint or ""
    yield LateWrites(full, gone=["/f"]).error.hint or ""
    plan = failed_plan(full, ValueError("x"))
    yield plan.findings[0].remedy or ""
    yield MigrationBlockedError(plan).hint or ""
    for state in (
        PresentState(full, "/p", finished=True, metadata_gone=True),
        PresentState(full, "/p", finished=False, lost_way="it is gone"),
    ):
        yield from (one.remedy or "" for one in state.findings())
    try:
        check_way_back_kept(
            full, {"gc.enabled": "false", "migrated": "true"}, {"gc.enabled": "true"}
        )
    except IcecombError as error:
        yield error.hint or ""
    yield deletion_remedy({"gc.enabled": "false", "migrated": "true"}, full)
    yield HealthFinding("x", Severity.NOTE, "", words=("maintain", "expire", full)).command or ""
    yield _set(full, "engine.hive.enabled", "true")
    console = Console(file=StringIO(), width=1000)
    Demo(
        Application(None, None, None, "text", TerminalProgress()),
        console,
        Path(f"/lake/{name}"),
    ).what_next(1, reverted=False)
    yield from console.file.getvalue().splitlines()


@pytest.mark.parametrize("name", HOSTILE)
def test_names_in_printed_commands_are_words(name: str) -> None:
    found = list(hints(name))
    assert sum("touch" in one for one in found) >= 12
    words = {f"db.{name}", f"db.{name}_dropped", name, f"/lake/{name}"}
    for text in found:
        assert text.isprintable()
        left = text.replace(f"list_tables({name!r})", "")
        for word in (*map(quoted_word, words), printed_name("db", name)):
            left = left.replace(word, "")
        assert "touch" not in left


TYPES = [
    "int) STORED AS ORC; DROP DATABASE hr CASCADE; --",
    "struct<a; DROP DATABASE hr CASCADE; x:int>",
    "struct<`a\nDROP DATABASE hr`:int>",
    "array<int>) COMMENT 'DROP DATABASE hr'",
    "uniontype<int,DROP DATABASE hr>",
    "decimal(10,2) DROP DATABASE hr",
    "int/* DROP DATABASE hr */",
]


@pytest.mark.parametrize("given", TYPES)
def test_types_in_printed_statements_are_types(given: str) -> None:
    columns = (FieldSchema("id", "map<string,array<decimal(10,2)>>"), FieldSchema("x", given))
    table = HiveTable("db", "t", storage=StorageDescriptor(columns=columns))
    remedy = hive_copy_remedy(table)
    assert "(`id` map<string,array<decimal(10,2)>>, `x` ...)" in remedy
    assert "for ... write the name or type" in remedy
    constraint = Constraint("DEFAULT", "d", ("x",), "1")
    printed = add_statement(table, constraint)
    assert printed.startswith("ALTER TABLE `db`.`t` CHANGE COLUMN `x` `x` ... CONSTRAINT `d`")
    assert "DROP" not in remedy + printed


SQL_NAMES = ["a` ; DROP DATABASE hr; --", "a' DROP", 'a" DROP', "a\\ DROP", "a\nDROP", "a -- DROP"]


@pytest.mark.parametrize("name", SQL_NAMES)
def test_names_in_printed_statements_end_none(name: str) -> None:
    table = entry(name, transactional="true")
    key = Constraint("FOREIGN KEY", name, (name,), parent=("db", name), parent_columns=(name,))
    printed = [
        add_statement(table, key),
        drop_statement(table, key),
        add_statement(table, Constraint("NOT NULL", name, (name,))),
        _set(f"db.{name}", "k", "v"),
        hive_copy_remedy(table),
        copy_remedy(table),
    ]
    findings = (
        *table_findings(table, Choices()),
        *table_findings(entry(name, **{"skip.header.line.count": "1"}), Choices()),
        *spark_findings(entry(name, **{"spark.sql.sources.provider": "parquet"}), {}),
    )
    printed += [one.remedy or "" for one in findings]
    assert len(printed) >= 9
    prose = re.compile(rf"migrate db\.{re.escape(name)}(?:_parquet|_external)?")
    constants = [printed_text(f"{folder}/{name}") for folder in ("/elsewhere", "/lake")]
    for text in printed:
        left = prose.sub("", text.replace("DROP CONSTRAINT", ""))
        for constant in constants:
            left = left.replace(constant, "")
        assert "DROP" not in left


@pytest.mark.parametrize(
    ("kind", "given", "is_printed"),
    [
        ("CHECK", "(id > 0 and (id < 9))", True),
        ("CHECK", "(name <> 'a;b')", False),
        ("CHECK", "(id > 0) ENABLE, DROP COLUMN x", False),
        ("CHECK", "(id > 0", False),
        ("CHECK", "(id > 0)); DROP DATABASE hr; --", False),
        ("CHECK", "id > 0", False),
        ("DEFAULT", "1.5", True),
        ("DEFAULT", "-3", True),
        ("DEFAULT", "'it''s'", True),
        ("DEFAULT", '"text"', True),
        ("DEFAULT", "NULL", True),
        ("DEFAULT", "CURRENT_USER()", True),
        ("DEFAULT", "cast('2020-01-01' as date)", True),
        ("DEFAULT", "DATE '2020-01-01'", True),
        ("DEFAULT", "1 COMMENT 'x'", False),
        ("DEFAULT", "1; DROP DATABASE hr", False),
        ("DEFAULT", "'a\\'; DROP DATABASE hr; --'", False),
        ("DEFAULT", "1 -- x", False),
        ("NOT NULL", "; DROP DATABASE hr", False),
    ],
)
def test_expressions_in_printed_statements_are_what_hive_has_there(
    kind: str, given: str, *, is_printed: bool
) -> None:
    table = HiveTable("db", "t", storage=StorageDescriptor(columns=(FieldSchema("id", "int"),)))
    printed = add_statement(table, Constraint(kind, "c", ("id",), given))
    assert (f" {kind} {given} DISABLE" in printed) is is_printed
    assert ("..." in printed) is (not is_printed and kind != "NOT NULL")
    assert is_printed or given not in printed


_TEXTS = (ast.JoinedStr, ast.Constant, ast.BinOp)
_PLACE = "\0"


def template(node: ast.expr) -> str:
    """The text of a constant, an f-string, a sum or a format, with a NUL for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"\{\w*\}|%s", _PLACE, node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else _filled(part) for part in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return template(node.left) + template(node.right)
    return _PLACE


def _filled(part: ast.expr) -> str:
    value = part.value if isinstance(part, ast.FormattedValue) else part
    is_constant = isinstance(value, ast.Name) and value.id.isupper()
    return "CONSTANT" if is_constant else _PLACE


def test_commands_are_printed_by_one_function() -> None:
    context = click.Context(program)
    names = "|".join(map(re.escape, program.list_commands(context)))
    unquoted = re.compile(rf"icecomb (?:--?\S+ )*(?:(?:{names})\b[^`;,:]*?|--\S+ )\0")
    for text in ('f"icecomb migrate plan {x}"', 'f"icecomb --warehouse {x}"'):
        assert unquoted.search(template(ast.parse(text, mode="eval").body))
    begun = re.compile(rf"icecomb (?:{names}|--|[\"{{])")
    found = []
    for path in (path for root in ROOTS for path in root.rglob("*.py")):
        if begun.search(text := path.read_text()) is None:
            continue
        nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, _TEXTS))
        found += [f"{path}:{one.lineno}" for one in nodes if unquoted.search(template(one))]
    assert not found, "write shell_command(...) of icecomb.format.shell_command"


_STATEMENT = re.compile(
    r"\b(?:DROP (?:TABLE|VIEW)|ALTER (?:TABLE|VIEW)|CREATE (?:EXTERNAL )?(?:TABLE|VIEW)|MSCK REPAIR TABLE|UNSET TBL"
    r"|INSERT (?:INTO|OVERWRITE)|REFRESH TABLE|SHOW CREATE TABLE|CALL|UNLOCK|hdfs dfs|kinit)\b[^;]*\0"
)
_QUOTE = {
    "printed_name",
    "printed_text",
    "printed_type",
    "quoted_name",
    "quoted_word",
    "shell_command",
}
_PLAIN = {
    "change": "a column's name, quoted, and its type, as `printed_type` takes it",
    "columns": "the same",
    "', '.join(sorted(set(unknown)))": "kinds of changes",
    "key": "one of icecomb's own words",
    "names": "columns of the demo",
    "hive_copy_remedy(table)": "statements of this list",
    "pair": "constants",
    "said": "an expression that Hive's grammar has",
    "setting": "the name of a setting",
    "state": "Hive's own words",
    "value": "one of icecomb's own words",
}
"""What else is filled into statements."""


def quoted(tree: ast.AST, scope: ast.AST, value: ast.expr) -> bool:
    """Whether a value was quoted, as far as its function, or one that it calls, shows it."""
    parts: list[ast.expr] | None = None
    if isinstance(value, ast.IfExp):
        parts = [value.body, value.orelse]
    elif isinstance(value, ast.JoinedStr):
        parts = value.values
    elif isinstance(value, ast.FormattedValue):
        parts = [value.value]
    elif isinstance(value, ast.GeneratorExp):
        parts = [value.elt]
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        parts = value.args if value.func.attr == "join" else None
    if parts is not None or isinstance(value, ast.Constant):
        return all(quoted(tree, scope, one) for one in parts or ())
    name = value.func if isinstance(value, ast.Call) else value
    if not isinstance(name, ast.Name):
        return False
    if name.id in _QUOTE or name.id.strip("_").isupper():
        return True
    if isinstance(value, ast.Call):
        inner = [one for one in ast.walk(tree) if getattr(one, "name", None) == name.id]
        made = [
            (one, given.value)
            for one in inner
            for given in ast.walk(one)
            if isinstance(given, ast.Return)
        ]
    else:
        made = [(scope, one.value) for one in ast.walk(scope) if name.id in targets(one)]
    return bool(made) and all(one and quoted(tree, where, one) for where, one in made)


def targets(node: ast.AST) -> set[str]:
    """The names that a statement gives a value to."""
    given = getattr(node, "targets", []) if isinstance(node, ast.Assign) else []
    given = [node.target] if isinstance(node, (ast.NamedExpr, ast.AugAssign)) else given
    return {one.id for each in given for one in ast.walk(each) if isinstance(one, ast.Name)}


def test_what_is_filled_into_printed_statements_is_quoted() -> None:
    found = []
    for path in (path for root in ROOTS for path in root.rglob("*.py")):
        tree = ast.parse(path.read_text())
        scopes = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
        for scope in scopes:
            for node in (one for one in ast.walk(scope) if isinstance(one, ast.JoinedStr)):
                text = "".join(
                    part.value if isinstance(part, ast.Constant) else _PLACE for part in node.values
                )
                found += [
                    f"{path.name}:{node.lineno} {ast.unparse(part.value)}"
                    for part in (_STATEMENT.search(text) and node.values) or ()
                    if isinstance(part, ast.FormattedValue)
                    and ast.unparse(part.value) not in _PLAIN
                    and not quoted(tree, scope, part)
                ]
    assert found == [], "quote it by printed_name, printed_text or quoted_word"
