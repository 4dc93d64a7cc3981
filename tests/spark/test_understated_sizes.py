"""Data files that are longer than their manifest says: Spark reads all of their rows."""

from __future__ import annotations

import pytest

from tests.catalog.metadata_of_others import half_its_size, with_its_file
from tests.catalog.test_understated_sizes import COUNT, ROWS, SETTINGS
from tests.rings import sampled

NAMESPACE = "understated"


@pytest.mark.parametrize("minor", sampled(["4.3", "3.5", "4.1"], keep=1))
def test_rows_behind_the_stated_size_are_read_counted_and_kept(sql_on, catalog, namespace, minor):
    sql = sql_on(minor)
    for kind, small_parts in SETTINGS.items():
        name = f"{kind}_{minor.replace('.', '_')}"
        properties = {"write.format.default": kind, **small_parts}
        right = catalog.create_table(
            (namespace, f"{name}_right"), ROWS.schema, properties=properties
        )
        right.append(ROWS)
        with_its_file(catalog, right, (namespace, name), half_its_size)
        table = f"lake.{namespace}.{name}"
        total = COUNT * (COUNT - 1) // 2
        assert sql(f"SELECT sum(id), count(s) FROM {table}") == [[total, COUNT]]
        assert sql(f"SELECT count(*) FROM {table} WHERE id >= 8990") == [[10]]
        # in parts, each row once
        sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('read.split.target-size'='65536')")
        assert sql(f"SELECT sum(id), count(s) FROM {table}") == [[total, COUNT]]
        sql(f"DELETE FROM {table} WHERE id = 1")
        assert sql(f"SELECT sum(id), count(s) FROM {table}") == [[total - 1, COUNT - 1]]
