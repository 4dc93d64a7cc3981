"""The metastore's calls about partitions of Hive tables, and about privileges on them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from hmsclient.genthrift.hive_metastore import ttypes

from icecomb.catalog.hive.thrift import wire
from icecomb.catalog.hive.thrift.answer import missing_table, result_list, stored
from icecomb.catalog.hive.thrift.calls import Calls
from icecomb.catalog.hive.thrift.catalog_name import DEFAULT_CATALOG, CatalogName
from icecomb.catalog.hive.thrift.entity import HivePartition
from icecomb.catalog.hive.thrift.thrift_codec import (
    decode,
    encode,
    partition_from_wire,
    partition_to_wire,
    set_facts,
)
from icecomb.format.rows.write.partition_path import HIVE_NULL

_PAGE: Final = 500
_CATALOG_FIELD: Final = 9
_ADDITION_CATALOG: Final = 6
_REMOVAL_CATALOG: Final = 9
_VALUES, _DATABASE, _TABLE = 1, 2, 3
_NAME: Final = re.compile(r"[^/=]+=[^/]*(/[^/=]+=[^/]*)*")
_ESCAPED: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_PLACE: Final = 1
_AUTHORIZER: Final = 5
_PLACE_CATALOG: Final = 6


class Partitions:
    """The partitions of a metastore's tables: `HiveClient.partitions`."""

    def __init__(self, calls: Calls, catalog: CatalogName) -> None:
        self._calls = calls
        self._catalog = catalog

    def names(self, database: str, table: str) -> list[str]:
        """Return the names of all partitions, such as ``dt=2024-01-01/hour=3`` (values escaped)."""
        with missing_table(database, table):
            found: list[str] = self._calls.read(
                "get_partition_names",
                self._catalog.database(database),
                table,
                -1,
                result=lambda raw: _checked_names(result_list(raw, _string)),
            )
        return found

    def named(self, database: str, table: str, names: Sequence[str]) -> list[HivePartition]:
        """Return the partitions of these names that exist; pass at most some hundreds of names."""
        return list(map(partition_from_wire, self.encoded(database, table, names)))

    def encoded(self, database: str, table: str, names: Sequence[str]) -> list[bytes]:
        """Return the same partitions as `named`, in binary form."""
        with missing_table(database, table):
            found: list[bytes] = self._calls.read(
                "get_partitions_by_names",
                self._catalog.database(database),
                table,
                list(names),
                result=lambda raw: _asked(database, table, names, result_list(raw, bytes)),
            )
        return found

    def pages(self, database: str, table: str, size: int = _PAGE) -> Iterator[list[HivePartition]]:
        """Yield all partitions in pages, in bounded memory: names first, then each page by name."""
        for page in self.name_pages(database, table, size):
            yield self.named(database, table, page)

    def name_pages(self, database: str, table: str, size: int = _PAGE) -> Iterator[list[str]]:
        """Yield the names of all partitions, in pages that fit one call."""
        names = self.names(database, table)
        for start in range(0, len(names), size):
            yield names[start : start + size]

    def add(self, partitions: Sequence[HivePartition]) -> None:
        """Add the partitions of one table that do not exist yet (all or none)."""
        if not partitions:
            return
        database, table = partitions[0].database, partitions[0].table
        request = ttypes.AddPartitionsRequest(database, table, ifNotExists=True, needResult=False)
        encoded = encode(request)[:-1] + self._field(3, partitions) + b"\0"
        encoded = self._catalog.mark(encoded, _ADDITION_CATALOG)
        with missing_table(database, table):
            self._calls.write_bytes("add_partitions_req", wire.struct_field(1, encoded) + b"\0")

    def alter(self, database: str, table: str, partitions: Sequence[HivePartition]) -> None:
        """Replace everything the server stores about existing partitions (all or none)."""
        encoded = wire.string_field(1, self._catalog.database(database))
        encoded += wire.string_field(2, table) + self._field(3, partitions)
        encoded += wire.struct_field(4, wire.map_field(1, {"DO_NOT_UPDATE_STATS": "true"}) + b"\0")
        with missing_table(database, table):
            self._calls.write_bytes("alter_partitions_with_environment_context", encoded + b"\0")

    def drop(self, database: str, table: str, names: Sequence[str]) -> None:
        """Drop the entries of the partitions of these names that exist; their files stay."""
        request = ttypes.DropPartitionsRequest(
            dbName=database,
            tblName=table,
            parts=ttypes.RequestPartsSpec(names=list(names)),
            deleteData=False,
            ifExists=True,
            needResult=False,
        )
        encoded = self._catalog.mark(encode(request), _REMOVAL_CATALOG)
        with missing_table(database, table):
            self._calls.write_bytes("drop_partitions_req", wire.struct_field(1, encoded) + b"\0")

    def _field(self, field_id: int, partitions: Sequence[HivePartition]) -> bytes:
        return wire.struct_list_field(
            field_id,
            [self._catalog.mark(partition_to_wire(one), _CATALOG_FIELD) for one in partitions],
        )


@dataclass(frozen=True, slots=True)
class PartitionGrant:
    """A privilege on a partition, or on a column of it, that somebody was granted.

    Attributes:
        column: The column; empty for the whole partition.
        principal: Name of the user, group or role.
        principal_type: The principal's type, by Thrift's number.
        privilege: The privilege, such as ``SELECT``.
        with_option: Whether the principal may grant it to others.
        authorizer: The authorizer that set it; None before Hive 3.
    """

    values: tuple[str, ...]
    column: str
    principal: str
    principal_type: int
    privilege: str
    grantor: str
    grantor_type: int
    with_option: bool
    authorizer: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the grant as JSON values."""
        return {**asdict(self), "values": list(self.values)}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> PartitionGrant:
        """Read what `to_json` wrote."""
        return cls(**{**raw, "values": tuple(raw["values"])})


class Grants:
    """The privileges on partitions of a metastore's tables: `HiveClient.grants`."""

    def __init__(self, calls: Calls, catalog: CatalogName) -> None:
        self._calls = calls
        self._catalog = catalog

    def of(self, database: str, table: str) -> list[PartitionGrant]:
        """Return the grants on a table's partitions, by two calls.

        A metastore lists those of one partition, or all that it has, which are few.
        """
        return [*self._listed(database, table, ()), *self._listed(database, table, ("",))]

    def add(self, database: str, table: str, grants: Sequence[PartitionGrant]) -> None:
        """Grant privileges on partitions; none may be granted already."""
        found = [self._encoded(database, table, one) for one in grants]
        bag = wire.struct_list_field(1, found) + b"\0"
        self._calls.write_bytes("grant_privileges", wire.struct_field(1, bag) + b"\0")

    def _listed(self, database: str, table: str, values: tuple[str, ...]) -> list[PartitionGrant]:
        # Values, whatever they are, ask for columns of partitions instead of those of tables.
        kind = ttypes.HiveObjectType.COLUMN if values else ttypes.HiveObjectType.PARTITION
        asked = ttypes.HiveObjectRef(kind, partValues=list(values) or None)
        found: list[PartitionGrant] = self._calls.read(
            "list_privileges",
            None,
            None,
            asked,
            result=lambda raw: [*self._decoded(result_list(raw, bytes), database, table)],
        )
        return found

    def _decoded(
        self, elements: Sequence[bytes], database: str, table: str
    ) -> Iterator[PartitionGrant]:
        """Yield the grants of a reply on a table's partitions; ValueError if one is incomplete."""
        for element in elements:
            one = set_facts(decode(ttypes.HiveObjectPrivilege, element), "hiveObject", "grantInfo")
            place, grant = one.hiveObject, one.grantInfo
            if (place.dbName, place.objectName) == (database, table) and self._is_here(element):
                set_facts(one, "principalName", "principalType")
                set_facts(grant, "privilege", "grantorType")
                yield PartitionGrant(
                    tuple(set_facts(place, "partValues").partValues),
                    place.columnName or "",
                    one.principalName,
                    one.principalType,
                    grant.privilege,
                    grant.grantor or "",
                    grant.grantorType,
                    bool(grant.grantOption),
                    _text(element, 0, _AUTHORIZER),
                )

    def _is_here(self, element: bytes) -> bool:
        """Return whether a grant is on a table of this catalog inside the metastore."""
        place = wire.find(element, 0, _PLACE)
        named = _text(element, place.value, _PLACE_CATALOG) if place else None
        return named in {None, self._catalog.name or DEFAULT_CATALOG}

    def _encoded(self, database: str, table: str, grant: PartitionGrant) -> bytes:
        kind = ttypes.HiveObjectType.COLUMN if grant.column else ttypes.HiveObjectType.PARTITION
        place = ttypes.HiveObjectRef(
            kind, database, table, list(grant.values), grant.column or None
        )
        given = ttypes.PrivilegeGrantInfo(
            grant.privilege, 0, grant.grantor, grant.grantor_type, grant.with_option
        )
        principal = ttypes.HiveObjectPrivilege(None, grant.principal, grant.principal_type, given)
        encoded = wire.struct_field(_PLACE, self._catalog.mark(encode(place), _PLACE_CATALOG))
        encoded += encode(principal)[:-1]
        if grant.authorizer is not None:
            encoded += wire.string_field(_AUTHORIZER, grant.authorizer)
        return encoded + b"\0"


def _checked_names(names: list[str]) -> list[str]:
    """Return the names of a table's partitions; ValueError if one is none, or comes twice."""
    for name in names:
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"{name!r} is not the name of a partition")
    if len(set(names)) != len(names):
        raise ValueError("the reply names a partition twice")
    return names


def _asked(database: str, table: str, names: Sequence[str], found: list[bytes]) -> list[bytes]:
    """Return the partitions of a reply; ValueError if one is not among those asked for, or twice.

    A name has the values of the columns in their order, escaped; an empty one is that of null.
    """
    asked = {tuple(map(_value, name.split("/"))) for name in names}
    for each in found:
        decode(ttypes.Partition, each)  # what the client passed over for a map that Python lacks
        texts = (_text(each, 0, _DATABASE), _text(each, 0, _TABLE))
        if tuple(stored(text) for text in texts) != (stored(database), stored(table)):
            raise ValueError(f"the reply is about a partition of another table, {texts[1]!r}")
        field = wire.find(each, 0, _VALUES)
        items = () if field is None else wire.list_items(each, field.value)
        values = tuple(_string(item) or HIVE_NULL for item in items)
        if values not in asked:
            raise ValueError(f"the reply is about another partition, {'/'.join(values)!r}")
        asked.remove(values)
    return found


def _value(part: str) -> str:
    """Return the value in ``key=value``, unescaped as by Hive (FileUtils.unescapePathName)."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), part.partition("=")[2]) or HIVE_NULL


def _string(item: bytes) -> str:
    return item[4:].decode()


def _text(encoded: bytes, position: int, field_id: int) -> str | None:
    """Return the text of a field of the struct at a position; None if it is not set."""
    field = wire.find(encoded, position, field_id)
    if field is None:
        return None
    return encoded[field.value + 4 : field.end].decode("utf-8", "replace")
