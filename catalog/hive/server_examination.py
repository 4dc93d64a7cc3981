"""Examination of a metastore: is it reachable, how fast is it, and what does it support."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from icecomb.catalog.configuration.catalog_property import CHECK_AND_PUT, LOCK_ENABLED, URI
from icecomb.catalog.hive.entry_change import NO_LOCKS_HINT
from icecomb.catalog.hive.lock import abandoned_locks, describe_holder, is_gone
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.failure import UNEXPLAINED
from icecomb.catalog.hive.thrift.known_server import ValueCheck
from icecomb.catalog.hive.thrift.server import left_probes, lock_expiry_s, value_check
from icecomb.catalog.hive.thrift.settings import ConnectionSettings
from icecomb.catalog.report.finding import Finding, Severity
from icecomb.format.errors import IcecombError, MetastoreError
from icecomb.format.shell_command import shell_command
from icecomb.format.sql_statement import printed_name

if TYPE_CHECKING:
    from icecomb.catalog.hive.catalog import HiveCatalog
    from icecomb.catalog.hive.thrift.entity import LockRow

_TYPE_CHANGES: Final = (
    "hive.metastore.disallow.incompatible.col.type.changes",
    "metastore.disallow.incompatible.col.type.changes",
)
_CALLS: Final = 3
_SHOWN: Final = 3


def examine_server(catalog: HiveCatalog, table: tuple[str, str] | None = None) -> Iterator[Finding]:
    """Examine reachability, version, checks and locks of a catalog's metastore.

    Args:
        table: The examined table: locks on others are not its problem. In its database, by
            default the first one, icecomb may create and drop a view to find out whether the
            server checks what it replaces.
    """
    yield from _unreached(catalog)
    try:
        yield _reached(catalog)
        names = [table[0]] if table else catalog.client.databases()
    except MetastoreError as error:
        yield Finding(Severity.PROBLEM, "metastore", error.message, error.hint)
        return
    yield _pointer_check(catalog, names[0] if names else "default")
    yield _column_check(catalog)
    yield from _left_probes(catalog)
    yield from _locks(catalog, names[0] if names else "default", table)


def abandoned_lock(row: LockRow, table: tuple[str, str] | None = None) -> Finding:
    """Return the finding of an abandoned lock: a note where it is on another table."""
    name = row.database if row.table is None else f"{row.database}.{row.table}"
    concerns = table is None or (row.database, row.table or table[1]) == table
    return Finding(
        Severity.PROBLEM if concerns else Severity.NOTE,
        "lock",
        f"{name} is locked, and its holder "
        f"{'has ended' if is_gone(row) else 'is silent'}: {describe_holder(row)}",
        shell_command("locks", "break", str(row.lock_id), "--yes"),
    )


def _unreached(catalog: HiveCatalog) -> Iterator[Finding]:
    """Yield a finding for each of several addresses that does not answer: a warning only."""
    addresses = (URI.of(catalog.properties) or "").split(",")
    for address in addresses if len(addresses) > 1 else ():
        with HiveClient(address, ConnectionSettings.of(catalog.properties)) as client:
            try:
                client.server_name()
            except MetastoreError as error:
                yield Finding(Severity.WARNING, "metastore", error.message, error.hint)


def _reached(catalog: HiveCatalog) -> Finding:
    client = catalog.client
    version = client.server_version()
    taken: list[float] = []
    for _ in range(_CALLS):
        started = time.perf_counter()
        client.server_name()
        taken.append(time.perf_counter() - started)
    return Finding(
        Severity.OK,
        "metastore",
        f"{client.uri} answers in {sorted(taken)[_CALLS // 2] * 1000:.1f} ms and calls itself "
        f"version {version}{' (so do 2.3 and 3.1)' if version == '3.0' else ''}",
    )


def _pointer_check(catalog: HiveCatalog, database: str) -> Finding:
    subject = "pointer check"
    told = CHECK_AND_PUT.of(catalog.properties)
    if told == "false":
        return Finding(
            Severity.WARNING,
            subject,
            f"{CHECK_AND_PUT} is false: the metastore is not told which pointer is replaced",
            f"set {CHECK_AND_PUT}=true unless the metastore cannot take it",
        )
    check = value_check(catalog.client, database)
    if check is ValueCheck.ATOMIC:
        return Finding(
            Severity.OK,
            subject,
            "the metastore checks which pointer it replaces (HIVE-26882, HIVE-28121)",
        )
    without = not LOCK_ENABLED.of(catalog.properties)
    trusted = told == "trusted"
    if check is ValueCheck.COMPARED:
        return Finding(
            Severity.PROBLEM if without and not trusted else Severity.WARNING,
            subject,
            "the metastore checks which pointer it replaces (HIVE-26882), but not in one statement "
            "(HIVE-28121): on MySQL and MariaDB only locks keep two commits at once apart",
            f"use Hive 2.3.10 or 4.0.1, or locks; where its database is neither, {CHECK_AND_PUT}="
            "trusted allows commits without locks",
        )
    if check is ValueCheck.REFUSED:
        return Finding(
            Severity.PROBLEM if without or trusted else Severity.WARNING,
            subject,
            "the metastore refuses to check which pointer it replaces, because it runs with "
            "hive.metastore.try.direct.sql=false: only locks keep commits apart",
            "set hive.metastore.try.direct.sql=true on the metastore"
            + (f", and {LOCK_ENABLED}=true until then" if without else ""),
        )
    if check in {ValueCheck.UNTRIED, ValueCheck.AWAY}:
        return Finding(
            Severity.PROBLEM if without and not trusted else Severity.WARNING,
            subject,
            "the metastore did not let it be tried whether it checks which pointer it replaces: "
            "only locks keep commits apart",
            "try again; where it forbids to create and drop a view, and is known to check, "
            f"{CHECK_AND_PUT}=trusted",
        )
    return Finding(
        Severity.PROBLEM if without else Severity.WARNING,
        subject,
        "the metastore does not check which pointer it replaces: only locks keep commits apart",
        f"set {LOCK_ENABLED}=true"
        if without
        else "a metastore with HIVE-26882 (Hive 2.3.10, 4.0.1) also guards against late requests",
    )


def _left_probes(catalog: HiveCatalog) -> Iterator[Finding]:
    """Yield a finding where views are left by which a metastore was tried that went away."""
    try:
        names = left_probes(catalog.client, time.time())
    except MetastoreError:
        return
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield Finding(
            Severity.NOTE,
            "pointer check",
            f"views are left by which it was tried what the metastore checks, when it went away: "
            f"{', '.join(names[:_SHOWN])}{more}",
            f"DROP VIEW {printed_name(*names[0].split('.', 1))}; a commit by a new process drops "
            "those of its database",
        )


def _column_check(catalog: HiveCatalog) -> Finding:
    subject = "column check"
    if any(_setting(catalog, name).lower() == "false" for name in _TYPE_CHANGES):
        return Finding(
            Severity.OK, subject, "columns may be reordered, dropped and changed in type"
        )
    return Finding(
        Severity.NOTE,
        subject,
        "the metastore compares column types by position: it refuses to move a column, or to drop "
        "one that is not the last",
        f"set {_TYPE_CHANGES[0]}=false on the metastore",
    )


def _setting(catalog: HiveCatalog, name: str) -> str:
    """Return a setting of the server, or an empty text if it has none of this name."""
    try:
        return catalog.client.config_value(name)
    except MetastoreError:
        return ""


def _locks(catalog: HiveCatalog, database: str, table: tuple[str, str] | None) -> Iterator[Finding]:
    subject = "locks"
    try:
        rows = catalog.client.locks()
        abandoned = abandoned_locks(catalog.client, rows)
        expiry = lock_expiry_s(catalog.client)
    except IcecombError as error:
        needed = LOCK_ENABLED.of(catalog.properties)
        atomic = value_check(catalog.client, database) is ValueCheck.ATOMIC
        unexplained = error.hint in {None, UNEXPLAINED}
        yield Finding(
            Severity.PROBLEM if needed else Severity.NOTE,
            subject,
            f"there are none: {error.message}",
            NO_LOCKS_HINT if needed and atomic and unexplained else error.hint,
        )
        return
    told = f"{expiry:g} s (hive.txn.timeout)" if expiry else "an unknown time"
    yield Finding(
        Severity.OK,
        subject,
        f"{len(rows)} held or waited for; a holder that is silent for {told} loses its lock where "
        "the metastore runs the housekeeper, which is off by default",
    )
    yield from (abandoned_lock(row, table) for row in abandoned)
