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
from icecomb.catalog.hive.thrift.failure import MovedError, RefusedError
from icecomb.catalog.hive.thrift.known_server import ValueCheck
from icecomb.format.errors import ConfigurationError, MetastoreError, NoSuchTableError
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
_PROBED: Final = "icecomb.probe"
_KEY_MISSING: Final = "New value for expected key"
"""Checked first by a metastore with HIVE-28121, and not at all with only HIVE-26882."""


def value_check(client: HiveClient, database: str) -> ValueCheck:
    """Return how the server handles an alter that names the parameter value it expects.

    Hive 3.1.3 accepts the expectation and ignores it, and versions do not tell, so it is probed: a
    view is created in ``database``, altered with a wrong and with a right expectation, and dropped.
    A server that refuses or fails the probe is tried again by the next call. The result holds for
    `HiveClient.pinned`.

    Raises:
        MovedError: If the server went away meanwhile.
    """
    with client.pinned() as name:
        server = client.servers[name]
        if server.check is not None:
            return server.check
        with server.guard:
            if server.check is None:
                try:
                    server.check = _probe(client, database)
                except MovedError:
                    raise
                except (MetastoreError, NoSuchTableError):
                    return ValueCheck.UNTRIED
            return server.check


def lock_expiry_s(client: HiveClient) -> float | None:
    """Return the seconds without a heartbeat after which a lock expires; None if unknown."""
    with client.pinned() as name:
        server = client.servers[name]
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


def _probe(client: HiveClient, database: str) -> ValueCheck:
    # A view: a table would make the server create a folder.
    view = HiveTable(
        database=database,
        name=f"icecomb_probe_{uuid.uuid4().hex}",
        storage=StorageDescriptor(columns=(FieldSchema("nothing", "int"),)),
        parameters={_PROBED: "before"},
        table_type="VIRTUAL_VIEW",
        view_original_text="SELECT 1 AS nothing",
        view_expanded_text="SELECT 1 AS nothing",
    )
    client.create_table(view)
    try:
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
        with contextlib.suppress(MetastoreError, NoSuchTableError):
            client.drop_table(database, view.name)


def _answer(client: HiveClient, altered: HiveTable, expected: str) -> RefusedError | None:
    """Return the refusal of an alter; None if it succeeded."""
    context = {EXPECTED_KEY: _PROBED, EXPECTED_VALUE: expected}
    try:
        client.alter_table(altered.database, altered.name, altered, context=context)
    except RefusedError as error:
        return error
    return None
