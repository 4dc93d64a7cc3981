"""What the tests of the catalog share."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("agreed_rows")


@pytest.fixture
def namespace(catalog: Any) -> Iterator[str]:
    """A namespace of this test."""
    name = f"n{uuid.uuid4().hex[:10]}"
    catalog.create_namespace(name)
    yield name
    for table in catalog.client.table_names(name):
        catalog.client.drop_table(name, table)
    catalog.drop_namespace(name)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Any]:
    """A catalog of folders with the namespace `db`."""
    from icecomb.catalog import load_catalog

    found = load_catalog("lake", type="hadoop", warehouse=str(tmp_path / "lake"))
    found.create_namespace("db")
    yield found
    found.close()


@pytest.fixture
def rows() -> pa.Table:
    return pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "b", "c"]})


@pytest.fixture
def table(catalog: Any, namespace: str, rows: pa.Table) -> Any:
    """A table without rows."""
    return catalog.create_table(f"{namespace}.t", rows.schema)


@pytest.fixture
def proxy(metastore: Any) -> Iterator[Any]:
    from thrift_proxy import ThriftProxy

    found = ThriftProxy(metastore.port)
    yield found
    found.close()


@pytest.fixture
def proxied(metastore: Any, proxy: Any) -> Iterator[Any]:
    """Our catalog behind the proxy."""
    from icecomb.catalog import load_catalog

    found = load_catalog("proxied", uri=proxy.uri, warehouse=str(metastore.warehouse))
    yield found
    found.close()
