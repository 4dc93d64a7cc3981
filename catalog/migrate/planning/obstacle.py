"""Obstacles to a migration: in the table's entry, in its columns, in its files; and remedies."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from icecomb.catalog.hive.thrift.constraints import Constraints
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.planning.migration_plan import ALREADY
from icecomb.catalog.migrate.source.avro_schema import AvroSchema
from icecomb.catalog.migrate.source.column_default import ColumnDefaults
from icecomb.catalog.migrate.source.copy_statement import (
    copy_remedy,
    hive_copy_remedy,
    left_out_note,
    printed_type,
)
from icecomb.catalog.migrate.source.footer import DEFAULT, NARROW, ORC_CASE
from icecomb.catalog.migrate.source.hive_type import CHAR_NOTE
from icecomb.catalog.migrate.source.source import (
    classes_of,
    format_of,
    is_transactional,
    parquet_by_position,
    provider_of,
    skipped_rows,
)
from icecomb.catalog.migrate.source.source_schema import SourceSchema
from icecomb.catalog.migrate.source.spark_type import collations
from icecomb.catalog.report.finding import Finding, Mentions, blocker, note, warning
from icecomb.format.errors import IcecombError
from icecomb.format.expressions.sql.parser import TokenKind, tokens
from icecomb.format.rows.files.described_file import FileProblem
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import TIMESTAMP_TYPES
from icecomb.format.sql_statement import LEFT_OUT, is_whole, printed_name, printed_text

if TYPE_CHECKING:
    from icecomb.catalog.hive.thrift.constraints import Constraint

_FORMATS: Final = ("Parquet", "ORC", "Avro")
FORMATS: Final = f"{', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}"
"""The supported file formats."""
NOT_IN_FILES: Final = frozenset({ALREADY, "view", "storage-handler", "no-location"})
"""Findings of tables whose rows are not in their folder: there is nothing to examine."""
IN_FOLDER: Final = frozenset({"no-permission", "same-folder"})
"""Findings about what apply writes to the table's folder, which no second table needs."""
_PROJECTED: Final = "projection.enabled"
_SPARK_BUCKETS: Final = "spark.sql.sources.schema.numBuckets"
_FILES: Final = {
    "unknown-format": (
        f"files are not {FORMATS}",
        "remove the file, or rewrite it",
    ),
    "acid-file": (
        "files hold changes of a transactional table",
        "remove the file: the table is not transactional",
    ),
    "avro-schema": ("files are read by Hive under another Avro schema", ""),
    "by-position": (
        "files have other columns at the positions by which Hive finds them",
        "",
    ),
    "numbered-columns": ("files have columns without names, of Hive before version 2", ""),
    "old-dates": ("files have dates before 1582 in another calendar than Iceberg's", ""),
    "two-level-lists": (
        (
            "files are sound, but have lists of lists in Parquet's old form of two levels "
            "(spark.sql.parquet.writeLegacyFormat), which icecomb cannot read"
        ),
        "",
    ),
    "unreadable-file": ("files cannot be read", "restore or remove the file"),
    "encrypted-file": ("files are encrypted", "encrypted Parquet files cannot be taken over"),
    "ambiguous-column": (
        "files have columns that differ only in case",
        "rewrite the file: Hive itself cannot tell the columns apart",
    ),
    "partition-column-in-file": (
        "files hold a partition column with values of its own",
        "rewrite the file without that column",
    ),
    "foreign-field-ids": (
        "files carry field ids of another table",
        "rewrite the file without field ids: Iceberg readers trust them most",
    ),
    "reassigned-name": (
        "files have columns under names of other columns",
        "rewrite the file: its columns are mistaken for others",
    ),
    "type-differs": (
        "files hold another type than the table says",
        "rewrite the file, or change the column's type in Hive",
    ),
    "timestamp-unit": (
        "files hold timestamps in another unit than the column",
        "rewrite the file in that unit: nanoseconds for timestamp_ns and timestamptz_ns",
    ),
    "int96-nanoseconds": (
        "files hold INT96, of which filters of Iceberg Java (1.12) on nanoseconds miss rows",
        "rewrite the file, or `icecomb migrate apply --accept int96-nanoseconds`",
    ),
    DEFAULT: (
        "files lack columns for which Spark reads a default",
        (
            "`icecomb migrate apply --property format-version=3`, whose columns have constants as "
            "defaults; or write the value into the files: INSERT OVERWRITE ... SELECT in Spark"
        ),
    ),
    NARROW: (
        "files hold values that Hive cuts or shows as null, which Iceberg would show whole",
        "",
    ),
    "foreign-type": (
        "files hold types that Iceberg does not have",
        "rewrite the file with the table's types",
    ),
    "timestamp-zone": (
        "files and table disagree on whether a timestamp has a zone",
        "rewrite the file, or choose with or without tz: `icecomb migrate apply --timestamp`",
    ),
    "writer-zone": (
        "files hold times that Hive shows in another zone than the table would",
        "rewrite the file by a Hive in UTC, or `icecomb migrate apply --timestamp timestamptz`",
    ),
}
"""Obstacles in files, and their remedies; where that is "", the table must be copied."""
_REMARKS: Final = {
    NARROW: (
        warning,
        (
            "do not tell whether all values fit the type: Hive cuts longer texts and shows null "
            "for integers out of range, where Iceberg shows them whole"
        ),
        "`icecomb migrate verify` compares with what Hive shows",
    ),
    ORC_CASE: (
        warning,
        (
            "are ORC with upper case letters in names of columns: Hive 3 shows null there (it "
            "minds the case of ORC's names), Spark and Iceberg the values"
        ),
        "none where Spark reads the table; `icecomb migrate verify` compares with what Spark shows",
    ),
}
"""What Hive may show otherwise of files."""
_TOKEN_LETTERS: Final = {
    TokenKind.WORD: "w",
    TokenKind.NAME: "n",
    TokenKind.TEXT: "t",
    TokenKind.BYTES: "b",
    TokenKind.NUMBER: "1",
}
_CHECK_TOKENS: Final = re.compile(r"\(\)")
_DEFAULT_TOKENS: Final = re.compile(r"[-+]?1|t|b|wt?|w\(\)")


def table_findings(table: HiveTable, choices: Choices) -> Iterable[Finding]:
    """Yield the findings in the metastore's entry about a migration."""
    parameters = table.parameters
    if table.is_iceberg:
        yield note(ALREADY, f"{table.full_name} is an Iceberg table already", "nothing to do")
        return
    if table.is_view:
        yield blocker("view", f"{table.full_name} is a view", "migrate the tables it reads")
        return
    if is_transactional(table):
        yield blocker("transactional", *_transactional(table))
    if handler := parameters.get("storage_handler"):
        # What classes its rows would be in says nothing then.
        remedy = hive_copy_remedy(table)
        yield blocker("storage-handler", f"its rows are kept by {handler}", remedy)
        return
    provider = provider_of(table)
    if provider not in {"hive", *map(str.lower, _FORMATS)}:
        yield blocker("format", f"it is a Spark table of format {provider}", copy_remedy(table))
    elif format_of(table.storage) is None:
        yield blocker(
            "format",
            f"its files are not simply {FORMATS} ({classes_of(table.storage)})",
            copy_remedy(table),
        )
    if table.partition_keys and parameters.get(_PROJECTED, "").lower() == "true":
        yield blocker(
            "projected-partitions",
            f"Trino and Athena compute its partitions ({_PROJECTED}), whatever the metastore has "
            "of them",
            "register them (MSCK REPAIR TABLE, or Trino's system.sync_partition_metadata), then "
            f"unset {_PROJECTED}",
        )
    if not table.storage.location:
        yield blocker("no-location", "it has no folder", "give the table a location in Hive")
    if parquet_by_position(table):
        yield parquet_positions(())
    if skipped := skipped_rows(table):
        yield blocker(
            "skipped-rows",
            f"Hive leaves rows of each file out ({skipped}), which Iceberg would show",
            f"if they are rows: ALTER TABLE {printed_name(table.database, table.name)} UNSET "
            f"TBLPROPERTIES ({printed_text(skipped.partition('=')[0])}) in Hive, or of its SerDe "
            f"SET SERDEPROPERTIES to '0'; if not, {hive_copy_remedy(table)}",
        )
    if collated := collations(parameters):
        told = blocker if "collation" not in choices.accept else warning
        yield told(
            "collation",
            f"Spark compares texts by a collation, which Iceberg lacks ({', '.join(collated)}): "
            "conditions, GROUP BY and joins would find other rows",
            "write the comparison into the statements, as lower(c) = 'x'; `icecomb migrate apply "
            "--accept collation` goes on without it",
            collated,
        )
    recorded = parameters.get(_SPARK_BUCKETS, "")
    buckets = max(table.storage.num_buckets, int(recorded[:9]) if recorded.isdecimal() else 0)
    if buckets > 0 and "bucketing" not in choices.accept:
        yield blocker(
            "bucketed",
            f"it is bucketed into {buckets}",
            "Iceberg cannot keep Hive's bucketing; `icecomb migrate apply --accept bucketing` goes "
            "on without it",
            tuple(table.storage.bucket_columns),
        )
    elif buckets > 0:
        yield warning("bucketed", "its Hive bucketing will be lost", "accepted")


def parquet_positions(partitions: Collection[str]) -> Finding:
    """Return the finding that Hive finds columns of Parquet files by position.

    Args:
        partitions: Names of the partitions whose entries say so; none if the table's does.
    """
    whose = f"{len(partitions)} partitions have columns that" if partitions else "its columns"
    return blocker(
        "by-position",
        f"{whose} are found by position, not by name (parquet.column.index.access)",
        "rewrite the files with the right column names",
        partitions,
    )


def schema_findings(converted: SourceSchema, choices: Choices) -> Iterable[Finding]:
    """Yield the columns that cannot be converted, and the choices of the conversion."""
    for column, error in converted.problems:
        remedy = "drop or convert the column in Hive"
        yield blocker("unsupported-column", f"column {column}: {error}", remedy, (column,))
    for column, notes in converted.notes.items():
        for text in notes:
            yield note("converted-type", f"column {column}: {text}", "recorded", (column,))
    if padded := tuple(name for name, notes in converted.notes.items() if CHAR_NOTE in notes):
        yield warning(
            "padded-char",
            f"{', '.join(padded)}: Hive and Spark compare char(n) without the blanks at its end, "
            "Iceberg as it is in the files: those that Spark itself wrote in Parquet and ORC have "
            "the blanks, and its partition values, too (c = 'ab' finds nothing there), what Hive "
            "wrote has none (c = 'ab   ' finds nothing)",
            "compare rtrim(c), or copy the table instead: CREATE TABLE ... AS SELECT rtrim(c) AS "
            "c, ... in Spark, where SELECT * would copy the blanks",
            padded,
        )
    keys = {field.name for field in converted.spec.fields}
    if chars := tuple(name for name in padded if name in keys):
        told = blocker if "char-partition" not in choices.accept else warning
        yield told(
            "char-partition",
            f"the table is partitioned by char(n): {', '.join(chars)}; Hive and Spark fill values "
            "up with blanks, so 'ab' and 'ab   ' are one partition; in Iceberg they are two, and "
            "an INSERT OVERWRITE that names the one leaves the rows of the other",
            "copy the table: CREATE TABLE ... AS SELECT rtrim(k) AS k, ...; or `icecomb migrate "
            "apply --accept char-partition`, where all jobs write the blanks themselves",
            chars,
        )
    timestamps = [
        column.name
        for column in converted.schema.columns
        if isinstance(column.field_type, TIMESTAMP_TYPES)
    ]
    for kind in sorted({str(converted.schema.find_type(name)) for name in timestamps}):
        names = tuple(name for name in timestamps if str(converted.schema.find_type(name)) == kind)
        instants = ", instants; Hive shows a timestamp as local time" if "tz" in kind else ""
        yield note(
            "timestamps",
            f"{', '.join(names)}: becomes {kind}{instants}",
            "`icecomb migrate apply --timestamp` chooses",
            names,
        )


def default_findings(schema: Schema, defaults: ColumnDefaults) -> Iterable[Finding]:
    """Yield the columns whose default for new rows the table would lack."""
    kept = {f.name.lower() for f in schema.fields if f.write_default is not None}
    if lost := sorted(defaults.written.keys() - kept):
        yield warning(
            DEFAULT,
            "where a statement gives no value, Spark writes a default that the table would not "
            f"have: {', '.join(f'{name} {defaults.written[name]}' for name in lost)}",
            "`icecomb migrate apply --property format-version=3` keeps those that are constants; "
            "else name the value in these statements",
            lost,
        )


def constraint_findings(table: HiveTable, constraints: Constraints) -> Iterable[Finding]:
    """Yield a blocker for a partitioned table whose constraints would move to other columns.

    The metastore stores the positions of columns, not their names, and the conversion changes
    these. A metastore of Hive 2.3 refuses further changes of the table then.
    """
    if not table.partition_keys:
        return
    if found := constraints.of(table.database, table.name):
        drops = "; ".join(drop_statement(table, one) for one in found)
        adds = "; ".join(add_statement(table, one) for one in found)
        yield blocker(
            "constraints",
            f"it is partitioned and has {len(found)} constraints, which would end up on other "
            "columns",
            f"drop them in Hive: {drops}; after a revert add them again: {adds}"
            f"{left_out_note(drops + adds)}",
            list(map(str, found)),
        )


def _transactional(table: HiveTable) -> tuple[str, str]:
    """Return the message about a transactional table, and its remedy."""
    name = table.full_name
    if table.parameters.get("transactional_properties", "").lower() == "insert_only":
        message = (
            f"{name} is transactional (insert-only): only Hive's transactions tell which of its "
            "files count"
        )
    else:
        message = f"{name} is transactional (ACID): its files hold deltas, not rows"
    return message, hive_copy_remedy(table)


def avro_findings(converted: SourceSchema, declared: AvroSchema | None) -> Iterable[Finding]:
    """Yield a blocker if the columns are not those of the Avro schema that Hive reads by."""
    if declared is None:
        return
    keys = {field.source_id for field in converted.spec.fields}
    columns = [f.name.lower() for f in converted.schema.fields if f.field_id not in keys]
    columns += [name.lower() for name, _ in converted.problems]
    names = [name.lower() for name in declared.names]
    if wrong := sorted(set(columns).symmetric_difference(names)):
        yield blocker(
            "avro-schema",
            "the metastore's columns are not those of the Avro schema by which Hive reads: "
            + ", ".join(wrong),
            "ALTER TABLE ... UPDATE COLUMNS in Hive brings the metastore up to date",
            tuple(wrong),
        )


class FileProblems:
    """The problems of files, as one finding for each kind."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Mentions, Mentions]] = {}

    def add(self, location: str, problems: Iterable[FileProblem]) -> None:
        """Record the problems of one file."""
        codes = set()
        for problem in problems:
            files, places = self._found.setdefault(problem.code, (Mentions(), Mentions()))
            column = f"{problem.column}: " if problem.column else ""
            places.add(f"{location}: {column}{problem.message}")
            if problem.code not in codes:
                codes.add(problem.code)
                files.add(location)

    def findings(self, table: HiveTable) -> Iterable[Finding]:
        """Yield the findings."""
        for code, (files, places) in self._found.items():
            what, remedy = _FILES[code]
            if code == NARROW:
                remedy = (
                    "if the values are right, widen the column (ALTER TABLE ... CHANGE ... STRING "
                    f"or BIGINT); else {hive_copy_remedy(table)}"
                )
            yield blocker(code, f"{len(files)} {what}", remedy or copy_remedy(table), places)


class FileRemarks:
    """What Hive may show otherwise of files than Iceberg, as one finding for each kind."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Mentions, dict[str, None]]] = {}

    def add(self, location: str, remarks: Iterable[tuple[str, str]]) -> None:
        """Record the remarks on one file."""
        codes = set()
        for code, column in remarks:
            files, columns = self._found.setdefault(code, (Mentions(), {}))
            columns[column] = None
            if code not in codes:
                codes.add(code)
                files.add(location)

    def findings(self, table: HiveTable) -> Iterable[Finding]:
        """Yield the findings."""
        for code, (files, columns) in self._found.items():
            severity, what, remedy = _REMARKS[code]
            named = ", ".join(sorted(columns))
            counted = f"{named}: {len(files)} files {what}"
            # Spark reads a table of its own whatever the case of names is.
            told = note if code == ORC_CASE and provider_of(table) != "hive" else severity
            yield told(code, counted, remedy, files)


def drop_statement(table: HiveTable, constraint: Constraint) -> str:
    """Return the statement that drops a constraint."""
    return f"ALTER TABLE {_table_name(table)} DROP CONSTRAINT {printed_name(constraint.name)}"


def add_statement(table: HiveTable, constraint: Constraint) -> str:
    """Return the statement that adds a constraint again, under its name and on its columns.

    Hive validates no constraint, and rejects statements that ask for it.
    """
    named = f"CONSTRAINT {printed_name(constraint.name)}"
    state = (
        f"{'ENABLE' if constraint.enabled else 'DISABLE'} NOVALIDATE "
        f"{'RELY' if constraint.relied else 'NORELY'}"
    )
    if constraint.kind in {"NOT NULL", "DEFAULT", "CHECK"}:
        # Hive stores the parentheses of a check with it.
        said = f"{constraint.kind} {_constraint_expression(constraint)}".rstrip()
        if not constraint.columns:
            return f"ALTER TABLE {_table_name(table)} ADD {named} {said} {state}"
        (column,) = constraint.columns
        types = {one.name: one.type for one in (*table.storage.columns, *table.partition_keys)}
        name = printed_name(column)
        change = f"{name} {name} {printed_type(types.get(column.lower(), ''))}"
        return f"ALTER TABLE {_table_name(table)} CHANGE COLUMN {change} {named} {said} {state}"
    said = f"{constraint.kind} ({_names(constraint.columns)})"
    if constraint.kind == "FOREIGN KEY":
        said += (
            f" REFERENCES {printed_name(*constraint.parent)} ({_names(constraint.parent_columns)})"
        )
    return f"ALTER TABLE {_table_name(table)} ADD {named} {said} {state}"


def _table_name(table: HiveTable) -> str:
    return printed_name(table.database, table.name)


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(printed_name, names))


def _constraint_expression(constraint: Constraint) -> str:
    """Return a constraint's expression, or `LEFT_OUT` if it is not surely one that Hive has.

    That is in parentheses for a check; a default is a constant or the call of a function.
    """
    text = constraint.expression
    if constraint.kind == "NOT NULL":
        return ""
    if "\\" in text or not is_whole(re.sub("['\"]", "", text)):
        return LEFT_OUT
    try:
        outer = _outer_tokens(text)
    except IcecombError:
        return LEFT_OUT
    known = _CHECK_TOKENS if constraint.kind == "CHECK" else _DEFAULT_TOKENS
    return text if known.fullmatch(outer) else LEFT_OUT


def _outer_tokens(text: str) -> str:
    """Return one letter for each token outside of parentheses, which stand for their contents."""
    depth, outer = 0, ""
    for token in tokens(text, of_spark=True):
        depth -= token.is_sign(")")
        if depth < 0:
            return ""
        if depth == 0 and token.kind is not TokenKind.END:
            outer += token.value if token.kind is TokenKind.SIGN else _TOKEN_LETTERS[token.kind]
        depth += token.is_sign("(")
    return outer if depth == 0 else ""
