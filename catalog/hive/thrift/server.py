"""What a metastore does that its version does not tell: asked once per server and client.

A server that went away is asked again when it (or another one at its address) is back.
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
from icecomb.format.property import seconds

EXPECTED_KEY: Final = "expected_parameter_key"
EXPECTED_VALUE: Final = "expected_parameter_value"
MODIFIED: Final = "The table has been modified"
"""How a metastore with HIVE-26882 says that the expected value is not there."""
NO_DIRECT_SQL: Final = "Cannot update parameter with JDO"
"""How one with HIVE-28121 and ``hive.metastore.try.direct.sql=false`` refuses every such alter."""
_LOCK_EXPIRY: Final = replace(
    seconds("hive.txn.timeout", 300.0, "After how long a silent holder loses its lock."),
    also=("metastore.txn.timeout",),
)
_PROBED: Final = "icecomb.probe"
_KEY_MISSING: Final = "New value for expected key"
"""What one with HIVE-28121 looks at first, and one with HIVE-26882 alone not at all."""


def value_check(client: HiveClient, database: str) -> ValueCheck:
    """What the server does with an alter that names the parameter value it expects to replace.

    3.1.3 takes the expectation and ignores it, and versions do not tell, so it is tried: a view of
    our own is made in ``database``, altered with a wrong expectation and with a right one, and
    dropped. A server that does not let us try counts as one that ignores it. What is found holds
    for `HiveClient.pinned`.

    Raises:
        MovedError: the server went away meanwhile.
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
                    return ValueCheck.IGNORED
            return server.check


def lock_expiry_s(client: HiveClient) -> float | None:
    """Seconds without a heartbeat after which the server gives a lock away; None if unsaid."""
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
        # Wrong in two ways: which of them is named tells what the server does.
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
    """How an alter is refused; None if it is not."""
    context = {EXPECTED_KEY: _PROBED, EXPECTED_VALUE: expected}
    try:
        client.alter_table(altered.database, altered.name, altered, context=context)
    except RefusedError as error:
        return error
    return None
