"""What a metastore does that its version does not tell: asked once per server, remembered.

A server that went away is asked again when it (or another one at its address) is back.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from dataclasses import replace
from typing import Final

from icecomb.catalog.configuration import seconds
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable, StorageDescriptor
from icecomb.catalog.hive.thrift.failure import MovedError, RefusedError
from icecomb.format.errors import ConfigurationError, MetastoreError, NoSuchTableError

EXPECTED_KEY: Final = "expected_parameter_key"
EXPECTED_VALUE: Final = "expected_parameter_value"
MODIFIED: Final = "The table has been modified"
"""How a metastore with HIVE-26882 says that the expected value is not there."""

_guard: Final = threading.Lock()
_enforcing: Final[dict[str, bool]] = {}
_expiry: Final[dict[str, float | None]] = {}


def enforces_expected_value(client: HiveClient, database: str) -> bool:
    """Whether the server refuses an alter whose expected parameter value is wrong (HIVE-26882).

    3.1.3 takes the expectation and ignores it, and versions do not tell, so it is tried: a view of
    our own is made in ``database``, altered with a wrong expectation, and dropped. A server that
    does not let us try counts as not enforcing. What is found holds for `HiveClient.pinned`.

    Raises:
        MovedError: the server went away meanwhile.
    """
    with client.pinned() as server, _guard:
        known = _enforcing.get(server)
        if known is None:
            try:
                known = _probe(client, database)
            except MovedError:
                raise
            except (MetastoreError, NoSuchTableError):
                return False
            _enforcing[server] = known
    return known


def lock_expiry_s(client: HiveClient) -> float | None:
    """Seconds without a heartbeat after which the server gives a lock away; None if unsaid."""
    with client.pinned() as server, _guard:
        if server not in _expiry:
            _expiry[server] = None
            for name in ("hive.txn.timeout", "metastore.txn.timeout"):
                with contextlib.suppress(MetastoreError, ConfigurationError):
                    if text := client.config_value(name):
                        _expiry[server] = seconds(text)
                        break
        return _expiry[server]


def _probe(client: HiveClient, database: str) -> bool:
    key = "icecomb.probe"
    # A view: a table would make the server create a folder.
    view = HiveTable(
        database=database,
        name=f"icecomb_probe_{uuid.uuid4().hex}",
        storage=StorageDescriptor(columns=(FieldSchema("nothing", "int"),)),
        parameters={key: "before"},
        table_type="VIRTUAL_VIEW",
        view_original_text="SELECT 1 AS nothing",
        view_expanded_text="SELECT 1 AS nothing",
    )
    client.create_table(view)
    try:
        wrong = {EXPECTED_KEY: key, EXPECTED_VALUE: "something else"}
        client.alter_table(
            database, view.name, replace(view, parameters={key: "after"}), context=wrong
        )
    except RefusedError as error:
        if MODIFIED in error.answer:
            return True
        raise
    else:
        return False
    finally:
        with contextlib.suppress(MetastoreError, NoSuchTableError):
            client.drop_table(database, view.name)
