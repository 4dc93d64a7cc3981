"""What a user may write, and mistakes that a type checker must find: each says which it is."""

from __future__ import annotations

import pyarrow as pa

import icecomb
from icecomb.catalog import Catalog, Table, Transaction, View, load_catalog, migrate, open_table
from icecomb.format import (
    CommitFailedError,
    DayTransform,
    EqualTo,
    IcecombError,
    LongType,
    NestedField,
    PartitionField,
    PartitionSpec,
    Schema,
    StringType,
    Transform,
    ViewAlreadyExistsError,
)


def create(lake: Catalog) -> Table:
    schema = Schema(
        (
            NestedField(1, "id", LongType(), required=True),
            NestedField(2, "what", StringType()),
        )
    )
    spec = PartitionSpec(0, (PartitionField(1, 1000, DayTransform(), "day"),))
    by_text = PartitionField(source_id=1, field_id=1000, transform="identity", name="id")
    assert isinstance(by_text.transform, Transform)
    return lake.create_table("shop.orders", schema, partition_spec=spec)


def change(table: Table, rows: pa.Table) -> int:
    try:
        table.append(rows, snapshot_properties={"batch": "7"})
    except CommitFailedError as error:
        raise SystemExit(error.hint) from error
    with table.transaction() as transaction:
        within(transaction)
    return table.scan(row_filter=EqualTo("id", 5), selected_fields=("id",)).count()


def within(transaction: Transaction) -> None:
    transaction.delete("id = 7")


def shown(view: View, error: IcecombError) -> str:
    return f"{view.current_version()} {error.message} {ViewAlreadyExistsError.__name__}"


def migrated() -> int:
    lake = load_catalog("prod", uri="thrift://metastore:9083")
    if migrate.plan(lake, "sales.orders").blockers:
        return 0
    done = migrate.apply(lake, "sales.orders", migrate.Choices(accept=("bucketing",)))
    equal = migrate.verify(lake, "sales.orders").difference_count == 0
    return done.rows if equal else migrate.revert(lake, "sales.orders").partitions


def mistakes(table: Table) -> None:
    Schema("nonsense", 1, 2, wrong=True)  # type: ignore[call-overload]
    table.scan(row_filtr="id = 5")  # type: ignore[call-arg]
    table.apend(None)  # type: ignore[attr-defined]
    load_catalog(5)  # type: ignore[arg-type]
    icecomb.load_catalogue()  # type: ignore[attr-defined]
    icecomb.load_catalog(5)  # type: ignore[arg-type]
    version: int = icecomb.__version__  # type: ignore[assignment]
    del version
    open_table(None)  # type: ignore[arg-type]
    migrate.plan(table, "sales.orders")  # type: ignore[arg-type]
