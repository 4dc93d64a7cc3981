"""Planner of migrations of one or many tables, which also examines their surroundings."""

from __future__ import annotations

import base64
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Final

from icecomb.catalog.configuration.catalog_property import (
    ENGINE_ENABLED,
    FORMAT_VERSION_MAX,
    too_old_engines,
)
from icecomb.catalog.hive.engine import engine_properties
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import HiveDatabase, HiveTable
from icecomb.catalog.hive.thrift.failure import UnreachableError
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal.context import MigrationContext
from icecomb.catalog.migrate.journal.overwritten_entry import (
    DROPPED,
    dropped_commits,
    find_overwritten,
)
from icecomb.catalog.migrate.planning.entry_finding import replication_findings
from icecomb.catalog.migrate.planning.migration_plan import MigrationPlan, failed_plan
from icecomb.catalog.migrate.planning.neighbor import Neighbors, neighbors_of
from icecomb.catalog.migrate.planning.obstacle import NOT_IN_FILES, constraint_findings
from icecomb.catalog.migrate.planning.survey import plan_source
from icecomb.catalog.migrate.source.source import format_of, provider_of
from icecomb.catalog.report.finding import Finding, blocker, note, warning
from icecomb.catalog.report.progress import SILENT, THREADS, Progress, each, threads_each
from icecomb.format.errors import (
    CorruptFileError,
    FileIOError,
    IcecombError,
    MetastoreError,
    MigrationError,
    NoSuchFileError,
)
from icecomb.format.input_limit import bounded_json
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.property.table_property import HIVE_ENGINE, INTEROP, PARTITION_OVERWRITE_MODE
from icecomb.format.spec.metadata import DEFAULT_FORMAT_VERSION

if TYPE_CHECKING:
    from icecomb.catalog.hive.catalog import HiveCatalog


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Options of planning.

    Attributes:
        choices: Options of the conversion, and the blockers to accept.
        footers: Whether to read file footers.
        sample: Maximum number of files to read of each table; None for all.
        interop: The engines that will use the tables; see `engine_properties`.
        properties: Properties that the tables will have besides those of the Hive tables.
    """

    choices: Choices
    footers: bool = True
    sample: int | None = None
    interop: tuple[str, ...] | None = None
    format_version: int = DEFAULT_FORMAT_VERSION
    properties: Mapping[str, str] = field(default_factory=dict)


class Planner:
    """A planner of migrations of one metastore's tables, which shares answers among them."""

    def __init__(self, catalog: HiveCatalog, options: PlanOptions) -> None:
        self._catalog = catalog
        self._options = options
        self._databases: dict[str, HiveDatabase | None] = {}
        self._neighbors: dict[str, Neighbors] = {}
        self._looking = Lock()
        self._views: ViewReferences | None = None
        self._unread: tuple[Finding, ...] = ()
        try:
            self._views = ViewReferences(catalog.client)
        except UnreachableError:
            raise
        except MetastoreError as error:
            said = f"whether views name it is unknown: {error.message}"
            self._unread = (note("views-not-read", said, "look for its name in views yourself"),)

    def plan(
        self, name: tuple[str, str], progress: Progress, threads: int = THREADS
    ) -> MigrationPlan:
        """Return the plan of one table."""
        options = self._options
        context = MigrationContext(self._catalog, *name, progress)
        table = context.entry.load()
        found = plan_source(
            context.io,
            table,
            context.partitions(table),
            options.choices,
            progress,
            footers=options.footers,
            sample=options.sample,
            threads=threads,
            properties=options.properties,
        )
        found = replace(
            found,
            findings=(*_overwritten(context, table, options.choices.accept), *found.findings),
        )
        if any(finding.code in NOT_IN_FILES for finding in found.findings):
            return found
        constraints = constraint_findings(table, context.client.constraints)
        surroundings = self._surroundings(table)
        return replace(found, findings=(*found.findings, *constraints, *surroundings))

    def plans(
        self, names: Sequence[tuple[str, str]], jobs: int, progress: Progress
    ) -> Iterator[MigrationPlan]:
        """Yield the plans of many tables, in their order; failures are plans, too."""
        threads = threads_each(jobs)
        work = partial(self._attempt, threads)
        yield from each(progress, "planning", "tables", names, work, jobs, ahead=2 * jobs)

    def _attempt(self, threads: int, name: tuple[str, str]) -> MigrationPlan:
        try:
            return self.plan(name, SILENT, threads)
        except UnreachableError:
            raise
        except Exception as error:  # noqa: BLE001 - what is wrong with one is not with the others
            return failed_plan(".".join(name), error)

    def _surroundings(self, table: HiveTable) -> Iterable[Finding]:
        options, settings = self._options, self._catalog.properties
        yield from self._write_findings(table)
        yield reader_finding(table, settings, options.interop)
        yield from overwrite_findings(table)
        yield from version_findings(table, settings, options.interop, options.format_version)
        yield from replication_findings(table, self._database(table.database))
        yield from self._views.findings(table) if self._views else self._unread
        try:
            neighbors = self._neighbors_of(table.database)
        except UnreachableError:
            raise
        except MetastoreError as error:
            said = f"whether other tables share its folder is unknown: {error.message}"
            yield note("folders-not-read", said, "look at the locations of tables yourself")
        else:
            yield from neighbors.findings(table, options.choices.accept)

    def _write_findings(self, table: HiveTable) -> Iterator[Finding]:
        """Yield a blocker if the user cannot write to the table's folder, as apply must."""
        location = table.storage.location or ""
        try:
            self._catalog.io.check_writable(location)
        except NoSuchFileError:
            return  # a finding of its own
        except FileIOError as error:
            remedy = f"{error.hint or 'ask the owner of the folder'}; or migrate as another user"
            yield blocker("no-permission", error.message, remedy, (location,))

    def _neighbors_of(self, database: str) -> Neighbors:
        with self._looking:  # fetches very many entries only once
            if database not in self._neighbors:
                self._neighbors[database] = neighbors_of(self._catalog, database)
            return self._neighbors[database]

    def _database(self, name: str) -> HiveDatabase | None:
        if name not in self._databases:
            try:
                self._databases[name] = self._catalog.client.database(name)
            except UnreachableError:
                raise
            except IcecombError:  # a database that may not be read yields no finding
                self._databases[name] = None
        return self._databases[name]


def _overwritten(
    context: MigrationContext, table: HiveTable, accept: Collection[str]
) -> Iterator[Finding]:
    """Yield a blocker if the entry is an old copy of a migrated table, or in the place of one."""
    try:
        journal = context.journal_beside(table)
        if journal is None:
            return
        overwritten = find_overwritten(context.io, table, journal)
        dropped = dropped_commits(context.io, table, journal)
    except UnreachableError:
        raise
    except (CorruptFileError, MetastoreError, MigrationError) as error:
        yield blocker("journal", error.message, error.hint or "")
    except IcecombError:
        return  # an unreadable folder is a finding of its own
    else:
        if overwritten is not None:
            told = overwritten.error
            yield blocker("overwritten-entry", told.message, told.hint or "")
        if dropped is not None:
            kind = warning if DROPPED in accept else blocker
            yield kind(DROPPED, dropped.message, dropped.hint or "")


def reader_finding(
    table: HiveTable, settings: Mapping[str, str], interop: tuple[str, ...] | None
) -> Finding:
    """Return the finding about changes for engines that use the table by its name.

    Args:
        interop: The engines that will use it; see `engine_properties`.
    """
    name = table.full_name
    needed = engine_properties(interop, table.parameters, settings)
    by_hive = HIVE_ENGINE.of({**table.parameters, **needed}, default=ENGINE_ENABLED.of(settings))
    hive = (
        "as before from version 4 on, older ones with iceberg-hive-runtime; Impala as before"
        if by_hive
        else "not at all, nor older Impalas; `apply --interop hive,impala` lets them (Hive before "
        "4 with iceberg-hive-runtime on its class path)"
    )
    if by_hive and _has_avro_times(table):
        hive += "; its runtime for Hive 3 (1.4.3) cannot read times in Hive's Avro files, 1.11 can"
    return note(
        "readers",
        f"users of the name {name} get an Iceberg table from then on",
        "`icecomb spark-conf --session-catalog` keeps the name for Spark; docs/migration.md",
        (
            f"Spark with icecomb's or Iceberg's session catalog: {name} as before"
            + (", but INSERT OVERWRITE (overwrite-mode)" if table.partition_keys else ""),
            f"Spark without it: {name} fails; the table is <catalog>.{name} in an Iceberg catalog"
            + (
                f". Any: SHOW TABLE EXTENDED of {table.database}, as Hive reads it"
                if by_hive
                else ""
            ),
            f"Hive: {hive}",
            "Trino, Flink, PyIceberg: in an Iceberg catalog on this metastore",
            "views and jobs that name it: as the engine that runs them",
        ),
    )


def overwrite_findings(table: HiveTable) -> Iterator[Finding]:
    """Yield the finding about Spark's INSERT OVERWRITE of a partitioned table."""
    if not table.partition_keys:
        return
    setting = "spark.sql.sources.partitionOverwriteMode"
    if provider_of(table) == "hive":
        yield warning(
            "overwrite-mode",
            "INSERT OVERWRITE and insertInto replace the partitions that get rows, as before, only "
            "where Spark has icecomb's catalogs: in Iceberg's own they replace the whole table",
            f"set {setting}=dynamic where jobs that overwrite the table run with Iceberg's own "
            f"catalogs; in icecomb's, the property {PARTITION_OVERWRITE_MODE} says so",
        )
    else:
        yield note(
            "overwrite-mode",
            f"INSERT OVERWRITE and insertInto follow {setting}, as before; a PARTITION clause that "
            "names a whole partition empties it, if there is no row for it, only in icecomb's "
            "catalogs where that is dynamic",
            f"the property {PARTITION_OVERWRITE_MODE} says so; leave the setting static for such "
            "jobs where Spark has Iceberg's own catalogs",
        )


def version_findings(
    table: HiveTable,
    settings: Mapping[str, str],
    interop: tuple[str, ...] | None,
    format_version: int,
) -> Iterator[Finding]:
    """Return the findings about engines that cannot read a table of a format version.

    Args:
        interop: The engines that will use it; see `engine_properties`.
    """
    stated = table.parameters.get("format-version")
    if stated is not None and stated != str(format_version):
        yield note(
            "format-version",
            f"{table.full_name} becomes a table of format version {format_version}: its own "
            f"parameter format-version={stated} does not count, as Hive does not know it",
            "ask for a version by the property format-version",
        )
    if format_version <= DEFAULT_FORMAT_VERSION:
        return
    told = f"{table.full_name} becomes a table of format version {format_version}"
    highest = FORMAT_VERSION_MAX.of(settings)
    if highest is not None and format_version > highest:
        yield blocker(
            "format-version",
            f"{told}, and the catalog's {FORMAT_VERSION_MAX.key} is {highest}",
            f"leave out the property format-version, or raise {FORMAT_VERSION_MAX.key} once all "
            "engines that read the table know the version",
        )
        return
    engines = INTEROP.read(engine_properties(interop, table.parameters, settings)[INTEROP.key])
    if old := too_old_engines(engines, format_version):
        yield warning(
            "format-version",
            f"{told}, which {old} cannot read",
            "use these versions or newer ones, or leave out the property format-version; there is "
            "no way back to version 2 but a revert",
        )
    else:
        said = "readers that know only version 2 cannot read it"
        yield note("format-version", told, said)


def _has_avro_times(table: HiveTable) -> bool:
    """Return whether files of a table may hold what Hive's Avro has for times: timestamp-millis."""
    types = (column.type.lower() for column in table.storage.columns)
    return format_of(table.storage) is FileFormat.AVRO and any(
        "timestamp" in kind for kind in types
    )


_MATERIALIZED: Final = "MATERIALIZED_VIEW"
_KINDS: Final = ("VIRTUAL_VIEW", _MATERIALIZED)
_TRINO: Final = re.compile(r"\s*/\* Presto (?:Materialized )?View: (\S+) \*/\s*")
_SPARK_NAMESPACE: Final = "view.catalogAndNamespace.part.1"
_ENDED: Final = {
    "/": r"|/\*.*?\*/",
    "'": r"|'(?:[^'\\]|\\.)*'",
    '"': r'|(?P<text>"(?:[^"\\]|\\.)+")',
}
"""What ends: comments, constants, and names or constants, by their first characters."""
_ENDLESS: Final = {"/": r"|/(?=\*)", "'": "|'", '"': '|"(?!")'}
_OPENS: Final = frozenset({"from", "join"})
_CLOSES: Final = frozenset({"where", "group", "having", "order", "union", "select", "on", "limit"})


@dataclass(frozen=True, slots=True)
class _Reader:
    name: str
    materialized: bool


class ViewReferences:
    """The views of one metastore, read immediately, by the tables that they name."""

    def __init__(self, client: HiveClient) -> None:
        self._readers: defaultdict[tuple[str, str], list[_Reader]] = defaultdict(list)
        names: defaultdict[str, list[str]] = defaultdict(list)
        for database, name in client.names_of_types(_KINDS):
            names[database].append(name)
        for database, views in names.items():
            for view in client.tables(database, views):
                reader = _Reader(view.full_name, view.table_type == _MATERIALIZED)
                for place in sorted(named_tables(view)):
                    self._readers[place].append(reader)

    def findings(self, table: HiveTable) -> Iterator[Finding]:
        """Yield the finding about the views that name a table."""
        found = self._readers.get((table.database.lower(), table.name.lower()), [])
        if not found:
            return
        names = tuple(sorted(one.name for one in found))
        stored = tuple(sorted(one.name for one in found if one.materialized))
        if not stored:
            yield note(
                "views-on-it",
                f"{len(names)} views name the table",
                "each works on where the engine that runs it reads Iceberg tables by this name",
                names,
            )
            return
        yield warning(
            "views-on-it",
            f"{len(names)} views name the table, {len(stored)} of them materialized",
            "rebuild materialized views after apply, and after a revert: Hive does not see what "
            "is written to an Iceberg table",
            (*stored, *(name for name in names if name not in stored)),
        )


def named_tables(view: HiveTable) -> set[tuple[str, str]]:
    """Return the (database, table) pairs that a view's text may mean, in lower case."""
    text = view.view_expanded_text or view.view_original_text or ""
    default = view.parameters.get(_SPARK_NAMESPACE, view.database)
    trino = _TRINO.fullmatch(view.view_original_text or "")
    if trino is not None:
        text, default = _of_trino(trino[1], default)
    found = set()
    for parts, is_table in _names(text):
        if len(parts) > 1:
            found.add((parts[-2], parts[-1]))
        elif is_table:
            found.add((default.lower(), parts[0]))
    return found


def _of_trino(encoded: str, default: str) -> tuple[str, str]:
    try:
        raw = bounded_json(base64.b64decode(encoded))
        text, schema = raw["originalSql"], raw.get("schema") or default
    except (ValueError, KeyError, TypeError, AttributeError):
        return "", default
    return (text, schema) if isinstance(text, str) and isinstance(schema, str) else ("", default)


def _names(text: str) -> Iterator[tuple[list[str], bool]]:
    """Yield the dotted names in a text, each with whether it is at the position of a table."""
    parts: list[str] = []
    dotted = inside = expected = False
    for token in _tokens(text):
        kind = token.lastgroup
        if kind in {"word", "quoted", "text"}:
            plain = token[0] if kind == "word" else token[0][1:-1].replace("``", "`")
            word = plain.lower()
            if dotted:
                parts.append(word)
                dotted = False
                continue
            if parts:
                yield parts, expected
                parts, expected = [], False
            if kind == "word" and word in _OPENS:
                inside = expected = True
            elif kind == "word" and word in _CLOSES:
                inside = expected = False
            else:
                parts = [word]
        elif kind == "dot":
            dotted = bool(parts)
        elif kind == "other":
            if parts:
                yield parts, expected
                parts = []
            expected = inside and token[0] in ",("
            dotted = False
    if parts:
        yield parts, expected


def _tokens(text: str) -> Iterator[re.Match[str]]:
    """Yield the tokens of a text; where a quote or a comment never ends, it is a character.

    Those of its kind that follow never end, either. To look for the end of each would take time
    that grows with the square of their number.
    """
    kinds, at = "/'\"", 0
    while at < len(text):
        begin, at = at, len(text)
        for token in _pattern(kinds).finditer(text, begin):
            if token.lastgroup == "endless":
                kinds, at = kinds.replace(token[0], ""), token.start()
                break
            yield token


@cache
def _pattern(kinds: str) -> re.Pattern[str]:
    """Return the tokens, with quotes and comments that begin with these characters."""
    ended, endless = ("".join(map(each.__getitem__, kinds)) for each in (_ENDED, _ENDLESS))
    return re.compile(
        rf"--[^\n]*{ended}|(?P<quoted>`(?:[^`]|``)+`)|(?P<word>\w+)|(?P<dot>\.)"
        rf"|(?P<endless>(?!){endless})|(?P<other>\S)",
        re.DOTALL,
    )
