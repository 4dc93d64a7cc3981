"""Behavior of a metastore that its version does not tell: probed once per server and client.

A server that went away is probed again when it (or another one at its address) is back.
"""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import replace
from typing import Final

from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable, StorageDescriptor
from icecomb.catalog.hive.thrift.failure import (
    MovedError,
    RefusedError,
    ReplyLostError,
    UnreachableError,
)
from icecomb.catalog.hive.thrift.known_server import ValueCheck
from icecomb.format.errors import ConfigurationError, MetastoreError, NoSuchTableError
from icecomb.format.holding import Holding
from icecomb.format.property.property import seconds

EXPECTED_KEY: Final = "expected_parameter_key"
EXPECTED_VALUE: Final = "expected_parameter_value"
MODIFIED: Final = "The table has been modified"
"""The answer of a metastore with HIVE-26882 when the expected value is not there."""
NO_DIRECT_SQL: Final = "Cannot update parameter with JDO"
"""The answer to every such alter with HIVE-28121 and ``hive.metastore.try.direct.sql=false``."""
_LOCK_EXPIRY: Final = replace(
    seconds("hive.txn.timeout", 300.0, "Time after which a silent holder loses its lock."),
    also=("metastore.txn.timeout",),
)
PROBE: Final = "icecomb_probe_"
"""The beginning of the names of the views by which servers are probed."""
STALE_S: Final = 3600
"""The age in seconds from which on such a view is one that somebody left behind."""
_VIEW: Final = "VIRTUAL_VIEW"
_PROBED: Final = "icecomb.probe"
_KEY_MISSING: Final = "New value for expected key"
"""Checked first by a metastore with HIVE-28121, and not at all with only HIVE-26882."""


def value_check(client: HiveClient, database: str) -> ValueCheck:
    """Return how the server handles an alter that names the parameter value it expects.

    Hive 3.1.3 accepts the expectation and ignores it, and versions do not tell, so it is probed
    with a view that is created in ``database`` and dropped. The result holds for `HiveClient.pin`.
    """
    with Holding() as held, held:
        server = client.servers[client.pin(held)]
        if server.check is not None:
            return server.check
        with server.guard:
            if server.check is None:
                try:
                    server.check = _probe(client, database)
                except MovedError:
                    raise
                except (ReplyLostError, UnreachableError, NoSuchTableError):
                    return ValueCheck.AWAY
                except MetastoreError:
                    return ValueCheck.UNTRIED
            return server.check


def lock_expiry_s(client: HiveClient) -> float | None:
    """Return the seconds without a heartbeat after which a lock expires; None if unknown."""
    with Holding() as held, held:
        server = client.servers[client.pin(held)]
        if server.lock_expiry_asked:
            return server.lock_expiry_s
        with server.guard:
            if not server.lock_expiry_asked:
                for setting in (_LOCK_EXPIRY.key, *_LOCK_EXPIRY.also):
                    with contextlib.suppress(MetastoreError, ConfigurationError):
                        if text := client.config_value(setting):
                            server.lock_expiry_s = _LOCK_EXPIRY.read(text)
                            break
                server.lock_expiry_asked = True
            return server.lock_expiry_s


def left_probes(client: HiveClient, now_s: float) -> list[str]:
    """Return the full names of views of probes that are left in any database."""
    names: dict[str, list[str]] = {}
    for database, name in client.names_of_types((_VIEW,), f"{PROBE}*"):
        names.setdefault(database, []).append(name)
    found = (each for database in names for each in client.tables(database, names[database]))
    return sorted(each.full_name for each in found if _is_stale(each, now_s))


def drop_probes(client: HiveClient, database: str) -> bool:
    """Drop all views of probes in a database that holds nothing else; return whether there were."""
    names = client.table_names(database)
    if not all(name.startswith(PROBE) for name in names):
        return False
    found = client.tables(database, names)
    if not found or not all(_PROBED in each.parameters for each in found):
        return False
    for each in found:
        with contextlib.suppress(NoSuchTableError):
            client.drop_table(database, each.name)
    return True


def _is_stale(view: HiveTable, now_s: float) -> bool:
    return _PROBED in view.parameters and view.create_time < now_s - STALE_S


def _drop_stale(client: HiveClient, own: HiveTable) -> None:
    """Drop the older views of probes in the database of a new one, by the server's own clock."""
    with contextlib.suppress(MetastoreError):
        names = client.table_names_of_type(own.database, _VIEW, f"{PROBE}*")
        found = client.tables(own.database, names) if len(names) > 1 else []
        now_s = next((each.create_time for each in found if each.name == own.name), 0)
        for each in found:
            if _is_stale(each, now_s):
                with contextlib.suppress(NoSuchTableError):
                    client.drop_table(own.database, each.name)


def _probe(client: HiveClient, database: str) -> ValueCheck:
    # A view: a table would make the server create a folder.
    view = HiveTable(
        database=database,
        name=f"{PROBE}{uuid.uuid4().hex}",
        storage=StorageDescriptor(columns=(FieldSchema("nothing", "int"),)),
        parameters={_PROBED: "before"},
        table_type=_VIEW,
        view_original_text="SELECT 1 AS nothing",
        view_expanded_text="SELECT 1 AS nothing",
    )
    try:
        client.create_table(view)
    except ReplyLostError:
        _drop(client, view)
        raise
    try:
        _drop_stale(client, view)
        # Wrong in two ways: the one that is named tells how the server checks.
        wrong = _answer(client, replace(view, parameters={}), "something else")
        if wrong is None:
            return ValueCheck.IGNORED
        if _KEY_MISSING not in wrong.answer:
            if MODIFIED in wrong.answer:
                return ValueCheck.COMPARED
            raise wrong
        right = _answer(client, replace(view, parameters={_PROBED: "after"}), "before")
        if right is None:
            return ValueCheck.ATOMIC
        if NO_DIRECT_SQL in right.answer:
            return ValueCheck.REFUSED
        raise right
    finally:
        _drop(client, view)


def _drop(client: HiveClient, view: HiveTable) -> None:
    with contextlib.suppress(MetastoreError, NoSuchTableError):
        client.drop_table(view.database, view.name)


def _answer(client: HiveClient, altered: HiveTable, expected: str) -> RefusedError | None:
    """Return the refusal of an alter; None if it succeeded."""
    context = {EXPECTED_KEY: _PROBED, EXPECTED_VALUE: expected}
    try:
        client.alter_table(altered.database, altered.name, altered, context=context)
    except RefusedError as error:
        return error
    return None
