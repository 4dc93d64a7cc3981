"""The statements that take constraints off a Hive table and put them on again, as Hive's manual has them."""

from __future__ import annotations

import pytest

from icecomb.catalog.hive.thrift.constraints import Constraint
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable, StorageDescriptor
from icecomb.catalog.migrate.planning.obstacle import add_statement, drop_statement

TABLE = HiveTable(
    "shop",
    "orders",
    storage=StorageDescriptor(
        columns=(FieldSchema("id", "bigint"), FieldSchema("price", "decimal(9,2)"))
    ),
    partition_keys=(FieldSchema("day", "string"),),
)


@pytest.mark.parametrize(
    ("constraint", "put_on"),
    [
        (
            Constraint("PRIMARY KEY", "pk", ("id", "day"), relied=True),
            "ADD CONSTRAINT `pk` PRIMARY KEY (`id`, `day`) DISABLE NOVALIDATE RELY",
        ),
        (
            Constraint("FOREIGN KEY", "fk", ("id",), parent=("a", "b"), parent_columns=("c",)),
            (
                "ADD CONSTRAINT `fk` FOREIGN KEY (`id`) REFERENCES `a`.`b` (`c`) DISABLE "
                "NOVALIDATE NORELY"
            ),
        ),
        (
            Constraint("UNIQUE", "u`1", ("price", "id")),
            "ADD CONSTRAINT `u``1` UNIQUE (`price`, `id`) DISABLE NOVALIDATE NORELY",
        ),
        (
            Constraint("NOT NULL", "nn", ("day",), enabled=True),
            "CHANGE COLUMN `day` `day` string CONSTRAINT `nn` NOT NULL ENABLE NOVALIDATE NORELY",
        ),
        (
            Constraint("DEFAULT", "df", ("price",), "1.5", enabled=True, relied=True),
            (
                "CHANGE COLUMN `price` `price` decimal(9,2) CONSTRAINT `df` DEFAULT 1.5 ENABLE "
                "NOVALIDATE RELY"
            ),
        ),
        (
            Constraint("CHECK", "ck", (), "(id > 0)", enabled=True),
            "ADD CONSTRAINT `ck` CHECK (id > 0) ENABLE NOVALIDATE NORELY",
        ),
        (
            Constraint("CHECK", "ck", ("id",), "(id > 0)"),
            "CHANGE COLUMN `id` `id` bigint CONSTRAINT `ck` CHECK (id > 0) DISABLE NOVALIDATE NORELY",
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, Constraint) else "",
)
def test_a_constraint_is_taken_off_and_put_on_again(constraint: Constraint, put_on: str) -> None:
    name = "`" + constraint.name.replace("`", "``") + "`"
    assert (
        drop_statement(TABLE, constraint) == f"ALTER TABLE `shop`.`orders` DROP CONSTRAINT {name}"
    )
    assert add_statement(TABLE, constraint) == f"ALTER TABLE `shop`.`orders` {put_on}"
