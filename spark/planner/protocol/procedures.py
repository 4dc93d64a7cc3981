"""Messages about procedures: names, descriptions, calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icecomb.spark.planner.protocol.message import Message, Repeatable, Unrepeatable
from icecomb.spark.planner.protocol.tables import TableName


@dataclass(frozen=True, slots=True)
class ListProcedures(Repeatable):
    """Request to list a namespace's procedures: ``system`` has them. Answer: `ProcedureNames`."""

    catalog: str
    namespace: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProcedureNames(Message):
    """Names of procedures."""

    procedures: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class LoadProcedure(Repeatable):
    """Request to describe a procedure. Answer: `ProcedureDescription`."""

    catalog: str
    procedure: TableName


@dataclass(frozen=True, slots=True)
class ProcedureParameter(Message):
    """A parameter and its Spark type; `fallback` is its default as SQL, None if it has none."""

    name: str
    type: Any
    fallback: str | None


@dataclass(frozen=True, slots=True)
class ProcedureDescription(Message):
    """The description of a procedure for the bridge.

    Args:
        description: The purpose, signature and result, in a sentence.
        schema: Spark's schema of the result.
    """

    name: str
    description: str
    parameters: tuple[ProcedureParameter, ...]
    schema: Any


@dataclass(frozen=True, slots=True)
class ProcedureArgument(Message):
    """An argument: by name or, if that is null, by position."""

    name: str | None
    value: Any


@dataclass(frozen=True, slots=True)
class CurrentNamespace(Message):
    """The session's current catalog and namespace, for unqualified names."""

    catalog: str
    namespace: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CallProcedure(Unrepeatable):
    """Request to call a procedure. Answer: `ProcedurePage`s, then `ProcedureResult`.

    Args:
        arguments: The arguments in the statement's order.
        current: The session's current namespace.
        settings: Settings of the session that begin with ``spark.sql.iceberg.``.
    """

    catalog: str
    procedure: TableName
    arguments: tuple[ProcedureArgument, ...]
    current: CurrentNamespace
    case_sensitive: bool
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SessionWork(Message):
    """Work of the session for a procedure: read rows of a table and append them to it.

    Args:
        id: The id with which its end is reported, see `EndWork`.
    """

    id: str
    table: str
    read: Mapping[str, str]
    write: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SessionQuery(Message):
    """Work of the session: write a query's rows to a file, a JSON object per line.

    Args:
        id: The id with which its end is reported, see `EndWork`.
        file: The path of the file, which exists, on the driver's host.
    """

    id: str
    statement: str
    file: str


@dataclass(frozen=True, slots=True)
class ListedFolder(Message):
    """A folder to list; its path is spelled like those of the known files."""

    location: str
    path: str


@dataclass(frozen=True, slots=True)
class SessionListing(Message):
    """Work of the session for a procedure: list folders to a file, a JSON object per line.

    An object has ``folder``, the location of the folder, ``name``, ``mtime_ms``, ``is_folder``.

    Args:
        id: The id with which its end is reported, see `EndWork`.
        deep: Whether to list folders in them, too; otherwise they are reported.
        hidden_folders: A regular expression of names of folders to report but not list.
        hidden_files: A regular expression of names of files to ignore.
        always: A regular expression of names of files to report although they are known.
        known: The path of a file with one path per line: files that are not reported.
        file: The path of the file, which exists, on the driver's host.
    """

    id: str
    folders: tuple[ListedFolder, ...]
    deep: bool
    hidden_folders: str
    hidden_files: str
    always: str
    known: str
    file: str


@dataclass(frozen=True, slots=True)
class SessionSketches(Message):
    """Work of the session for a procedure: write sketches to a file, a JSON object per line.

    An object has ``sketch``, the compact theta sketch of a column in base 64. Values are hashed as
    their bytes in the single-value serialization.

    Args:
        id: The id with which its end is reported, see `EndWork`.
        columns: Names of the columns, quoted.
        uuids: Those of them for which Spark shows text, while their values are bytes.
        file: The path of the file, which exists, on the driver's host.
    """

    id: str
    table: str
    read: Mapping[str, str]
    columns: tuple[str, ...]
    uuids: tuple[str, ...]
    file: str


@dataclass(frozen=True, slots=True)
class ProcedurePage(Message):
    """Rows and requests of a procedure while it runs; see `icecomb.spark.values`."""

    rows: tuple[Any, ...]
    work: tuple[SessionWork, ...]
    queries: tuple[SessionQuery, ...]
    listings: tuple[SessionListing, ...]
    sketches: tuple[SessionSketches, ...]


@dataclass(frozen=True, slots=True)
class ProcedureResult(Message):
    """The end of a procedure, with what the session does before it shows the rows.

    Args:
        refreshed: Names of tables that it may have cached.
        views: Queries of temporary views, by the names of these.
    """

    refreshed: tuple[str, ...]
    views: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EndWork(Unrepeatable):
    """Report that a session has ended a piece of work. Answer: `Done`.

    Args:
        problem: The reason why it could not be done; None if it was.
    """

    catalog: str
    work: str
    problem: str | None
