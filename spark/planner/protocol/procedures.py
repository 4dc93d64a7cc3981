"""Procedures: named, described, called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icecomb.spark.planner.message import Message, Repeatable, Unrepeatable
from icecomb.spark.planner.protocol.tables import TableName


@dataclass(frozen=True, slots=True)
class ListProcedures(Repeatable):
    """Names the procedures of a namespace; they are in ``system``. Answer: `ProcedureNames`."""

    catalog: str
    namespace: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProcedureNames(Message):
    """Names of procedures."""

    procedures: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class LoadProcedure(Repeatable):
    """Asks for a procedure. Answer: `ProcedureDescription`."""

    catalog: str
    procedure: TableName


@dataclass(frozen=True, slots=True)
class ProcedureParameter(Message):
    """A parameter.

    Args:
        name: Its name.
        type: Spark's type.
        fallback: What stands for it when it is not given, as SQL; None where it must be given.
    """

    name: str
    type: Any
    fallback: str | None


@dataclass(frozen=True, slots=True)
class ProcedureDescription(Message):
    """What the bridge learns about a procedure.

    Args:
        name: Its name.
        description: What it does, takes and gives, in a sentence.
        parameters: What it takes.
        schema: Spark's schema of the rows it gives.
    """

    name: str
    description: str
    parameters: tuple[ProcedureParameter, ...]
    schema: Any


@dataclass(frozen=True, slots=True)
class ProcedureArgument(Message):
    """An argument: by name or, where that is null, by position."""

    name: str | None
    value: Any


@dataclass(frozen=True, slots=True)
class CurrentNamespace(Message):
    """Where the session looks for names that say neither catalog nor namespace."""

    catalog: str
    namespace: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CallProcedure(Unrepeatable):
    """Calls a procedure. Answer: `ProcedurePage`s, then `ProcedureResult`.

    Args:
        catalog: The catalog's handle.
        procedure: Its name.
        arguments: Those of the statement, in its order.
        current: Of the session.
        case_sensitive: Whether names of columns are.
    """

    catalog: str
    procedure: TableName
    arguments: tuple[ProcedureArgument, ...]
    current: CurrentNamespace
    case_sensitive: bool


@dataclass(frozen=True, slots=True)
class SessionWork(Message):
    """Rows of a table that the session reads, and appends to the table, for a procedure.

    Args:
        id: What it is called when it has ended, see `EndWork`.
        table: The table, as SQL names it.
        read: Options of the read.
        write: Options of the append.
    """

    id: str
    table: str
    read: Mapping[str, str]
    write: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SessionQuery(Message):
    """Rows that the session writes into a file, for a procedure: a JSON object a line.

    Args:
        id: What it is called when it has ended, see `EndWork`.
        statement: The query.
        file: The path of the file, which is there, on the driver's machine.
    """

    id: str
    statement: str
    file: str


@dataclass(frozen=True, slots=True)
class ListedFolder(Message):
    """A folder to list.

    Args:
        location: Where it is.
        path: Its path as the known ones are spelled.
    """

    location: str
    path: str


@dataclass(frozen=True, slots=True)
class SessionListing(Message):
    """Files that the session's executors list into a file, for a procedure: an object a line.

    An object has ``folder``, the location of the folder, ``name``, ``mtime_ms``, ``is_folder``.

    Args:
        id: What it is called when it has ended, see `EndWork`.
        folders: Which.
        deep: Whether folders in them are listed, too; otherwise they are told.
        hidden_folders: Names of folders that are told, and not listed; a regular expression.
        hidden_files: Names of files that are passed over; the same.
        always: Names of files that are told although they are known; the same.
        known: The path of a file of paths, one a line: such files are not told.
        file: The path of the file, which is there, on the driver's machine.
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
class ProcedurePage(Message):
    """What comes of a procedure while it runs.

    Args:
        rows: What it gives, see `icecomb.spark.planner.values`.
        work: What the session is to do.
        queries: What it is to answer.
        listings: What it is to list.
    """

    rows: tuple[Any, ...]
    work: tuple[SessionWork, ...]
    queries: tuple[SessionQuery, ...]
    listings: tuple[SessionListing, ...]


@dataclass(frozen=True, slots=True)
class ProcedureResult(Message):
    """The end of a procedure.

    Args:
        statements: SQL that the session runs before it shows the rows.
    """

    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EndWork(Unrepeatable):
    """Says that the session is done with some work. Answer: `Done`.

    Args:
        catalog: The catalog's handle.
        work: Its id.
        problem: Why it could not be done; None if it was.
    """

    catalog: str
    work: str
    problem: str | None
