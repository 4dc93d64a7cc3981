"""Conversion of partition transforms between Spark and Iceberg.

Spark writes `days(ts)` and `bucket(16, id)`, Iceberg `day` and `bucket[16]`. New partition fields
are named as by Iceberg Java: `ts_day`, `id_bucket`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.spec.partition import (
    PARTITION_FIELD_ID_START,
    PartitionField,
    PartitionSpec,
    check_redundant,
)
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import Transform, VoidTransform, parse_transform

_PLURALS: Final = {"year": "years", "month": "months", "day": "days", "hour": "hours"}
_TIMES: Final = (
    {plural: name for name, plural in _PLURALS.items()}
    | {name: name for name in _PLURALS}
    | {"date": "day", "date_hour": "hour"}
)
_NUMBERED: Final = re.compile(r"(bucket|truncate)\[(\d+)\]")


def transform_parts(transform: Transform) -> tuple[str, int | None]:
    """Return a transform's Iceberg name and number: `("bucket", 16)` or `("day", None)`."""
    text = str(transform)
    match = _NUMBERED.fullmatch(text)
    return (match[1], int(match[2])) if match else (text, None)


def spark_transforms(spec: PartitionSpec, schema: Schema) -> list[dict[str, Any]]:
    """Return the fields of a spec as Spark's transforms, without the void ones."""
    return [
        spark_transform(field.transform, name_path(schema, field.source_id))
        for field in spec.fields
        if not isinstance(field.transform, VoidTransform)
    ]


def spark_transform(transform: Transform, column: list[str]) -> dict[str, Any]:
    """Return one transform of one column under Spark's name."""
    name, number = transform_parts(transform)
    arguments: list[dict[str, Any]] = [{"column": column}]
    if number is not None:
        arguments.insert(0, {"value": number})
    return {"name": _PLURALS.get(name, name), "arguments": arguments}


def partition_spec(transforms: Iterable[Mapping[str, Any]], schema: Schema) -> PartitionSpec:
    """Convert Spark's transforms of a new table to a partition spec."""
    fields: list[PartitionField] = []
    for position, spark in enumerate(transforms):
        transform, path = iceberg_transform(spark)
        source = schema.find_field(".".join(path), case_sensitive=False)
        name = _field_name(transform, schema.find_column_name(source.field_id) or source.name)
        if any(name == other.name for other in fields):
            raise ValidationError(
                f"The table is partitioned by {name} twice",
                hint="Every column takes part with one transform of a kind.",
            )
        transform.check(source.field_type)
        fields.append(
            PartitionField(source.field_id, PARTITION_FIELD_ID_START + position, transform, name)
        )
    check_redundant(fields)
    return PartitionSpec(spec_id=0, fields=tuple(fields))


def name_path(schema: Schema, field_id: int) -> list[str]:
    """Return the names that lead from a column to a field through structs only."""
    names: list[str] = []
    at: int | None = field_id
    while at is not None:
        names.append(schema.find_field(at).name)
        at = schema.find_parent_id(at)
    return names[::-1]


def iceberg_transform(spark: Mapping[str, Any]) -> tuple[Transform, list[str]]:
    """Convert one of Spark's transforms to Iceberg's; also return its column's path."""
    name = str(spark["name"]).lower()
    columns = [part["column"] for part in spark["arguments"] if "column" in part]
    numbers = [part["value"] for part in spark["arguments"] if "value" in part]
    if len(columns) != 1:
        raise UnsupportedError(
            f"Iceberg (format v1, v2) has no partition transform {name} of {len(columns)} columns",
            hint="Give every transform one column.",
        )
    if name in {"bucket", "truncate"}:
        if len(numbers) != 1 or type(numbers[0]) is not int or numbers[0] < 1:
            raise ValidationError(
                f"{name} needs one number of at least 1",
                hint=f"Write it as {name}(16, {'.'.join(columns[0])}).",
            )
        return parse_transform(f"{name}[{numbers[0]}]"), columns[0]
    if name in {"identity", "void"} or name in _TIMES:
        if numbers:
            raise ValidationError(
                f"{name} takes a column and no number",
                hint=f"Write it as {name}({'.'.join(columns[0])}).",
            )
        return parse_transform(_TIMES.get(name, name)), columns[0]
    raise UnsupportedError(
        f"Iceberg has no partition transform {name!r}",
        hint="It has identity, years, months, days, hours, bucket(n, c) and truncate(n, c).",
    )


def _field_name(transform: Transform, column: str) -> str:
    name, _ = transform_parts(transform)
    suffix = {"identity": "", "truncate": "_trunc", "void": "_null"}.get(name, f"_{name}")
    return f"{column}{suffix}"
