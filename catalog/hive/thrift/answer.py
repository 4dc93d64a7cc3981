"""The metastore's answers: results cut out of replies, exceptions converted to icecomb's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from icecomb.catalog.hive.thrift import wire
from icecomb.catalog.hive.thrift.failure import RefusedError
from icecomb.format.errors import NoSuchNamespaceError, NoSuchTableError
from icecomb.format.shell_command import shell_command

_T = TypeVar("_T")


def result(raw: bytes, convert: Callable[[bytes], _T], *, nested: bool = False) -> _T:
    """Return the value of the struct in a reply, ``raw``; ValueError if it has no result.

    If ``nested``, use the first field of the reply's result, a struct.
    """
    found = _field(raw, wire.STRUCT, nested=nested)
    return convert(raw[found.value : found.end])


def result_list(raw: bytes, convert: Callable[[bytes], _T], *, nested: bool = False) -> list[_T]:
    """Return the values of the structs that a reply carries; see `result`."""
    found = _field(raw, wire.LIST, nested=nested)
    return [convert(item) for item in wire.list_items(raw, found.value)]


def stored(name: str | None) -> str | None:
    """Return the name of a database or table as a metastore keeps it."""
    return name and name.strip().lower()


def no_namespace(name: str) -> NoSuchNamespaceError:
    """Return the error for a missing database."""
    return NoSuchNamespaceError(
        f"There is no namespace {name}",
        hint="list_namespaces() names those that exist.",
        namespace=name,
    )


@contextmanager
def missing_namespace(name: str) -> Iterator[None]:
    """Convert the server's exception about a missing database to icecomb's."""
    try:
        yield
    except RefusedError as error:
        if error.kind == "NoSuchObjectException":
            raise no_namespace(name) from None
        raise


def check_possible(database: str, name: str) -> None:
    """Check that a name can be a table's, without NUL: some databases fail on others."""
    if "\0" in database + name:
        raise _no_table(database, name)


def _no_table(database: str, name: str) -> NoSuchTableError:
    return NoSuchTableError(
        f"There is no table {database}.{name}",
        hint=f"list_tables({database!r}), or `{shell_command('tables', database)}`, lists the "
        "tables.",
        table=f"{database}.{name}",
    )


@contextmanager
def missing_table(database: str, name: str) -> Iterator[None]:
    """Convert the server's exceptions about a missing table to icecomb's."""
    try:
        yield
    except RefusedError as error:
        # Hive answers an alter of a missing table with InvalidOperationException.
        gone = error.kind == "InvalidOperationException" and (
            "table not found" in error.answer or f"{name} doesn't exist" in error.answer
        )
        if gone or error.kind in {"NoSuchObjectException", "UnknownTableException"}:
            raise _no_table(database, name) from None
        raise


def _field(raw: bytes, type_id: int, *, nested: bool) -> wire.Field:
    """Return the field of the result, of a type that Thrift's decoder has read within limits."""
    found = wire.find(raw, wire.reply_body(raw), 0)
    if found is not None and found.type_id == wire.STRUCT and nested:
        found = wire.find(raw, found.value, 1)
    if found is None or found.type_id != type_id:
        raise ValueError("the reply has no result")
    return found
