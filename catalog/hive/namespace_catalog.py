"""Databases of a Hive metastore as namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from icecomb.catalog.catalog import Catalog, Name
from icecomb.catalog.catalog_property import WAREHOUSE
from icecomb.catalog.hive.thrift.entity import HiveDatabase
from icecomb.catalog.hive.thrift.user import current_user
from icecomb.catalog.identifier import Identifier, database_of
from icecomb.format.argument import checked_members, property_texts
from icecomb.format.errors import ValidationError

if TYPE_CHECKING:
    from icecomb.catalog.hive.thrift.client import HiveClient

_COMMENT: Final = "comment"
_LOCATION: Final = "location"
_OWNER: Final = "hive.metastore.database.owner"
_OWNER_TYPE: Final = "hive.metastore.database.owner-type"
_OWNER_TYPES: Final = ("USER", "GROUP", "ROLE")


class HiveNamespaceCatalog(Catalog):
    """The part of `HiveCatalog` that is about namespaces."""

    client: HiveClient

    def list_namespaces(self, namespace: Name = ()) -> list[Identifier]:
        """See `Catalog.list_namespaces`; a metastore has one level."""
        if tuple(namespace):
            self.client.database(database_of(namespace))
            return []
        return [(database,) for database in self.client.databases()]

    def create_namespace(
        self, namespace: Name, properties: Mapping[str, str] | None = None
    ) -> None:
        """See `Catalog.create_namespace`; ``hive.metastore.database.owner[-type]`` is known."""
        name = database_of(namespace)
        given = property_texts("property of a namespace", properties)
        owner, owner_type = _owner(given)
        warehouse = WAREHOUSE.of(self.properties)
        location = given.pop(_LOCATION, None)
        if location is None and warehouse:
            location = f"{warehouse.rstrip('/')}/{name}.db"
        self.client.create_database(
            HiveDatabase(
                name=name,
                description=given.pop(_COMMENT, None),
                location=location,
                parameters=given,
                owner=owner or current_user(),
                owner_type=owner_type or "USER",
            )
        )

    def drop_namespace(self, namespace: Name) -> None:
        """See `Catalog.drop_namespace`."""
        self.client.drop_database(database_of(namespace))

    def load_namespace_properties(self, namespace: Name) -> dict[str, str]:
        """See `Catalog.load_namespace_properties`."""
        found = self.client.database(database_of(namespace))
        shown = {key: value for key, value in found.parameters.items() if key != _COMMENT}
        if found.location:
            shown[_LOCATION] = found.location
        if comment := _comment(found):
            shown[_COMMENT] = comment
        if found.owner:
            shown[_OWNER] = found.owner
            shown[_OWNER_TYPE] = found.owner_type or "USER"
        return shown

    def update_namespace_properties(
        self,
        namespace: Name,
        removals: Iterable[str] | None = None,
        updates: Mapping[str, str] | None = None,
    ) -> None:
        """See `Catalog.update_namespace_properties`; the location cannot be changed.

        Raises:
            ValidationError: also for an owner's type without an owner.
        """
        removed = set(checked_members("properties to remove", removals or (), str))
        changed = property_texts("property of a namespace", updates)
        if both := sorted(removed & changed.keys()):
            raise ValidationError(
                f"{', '.join(both)}: cannot be set and removed at once",
                hint="name each property once: to be set, or to be removed",
            )
        if _LOCATION in removed | changed.keys():
            raise ValidationError(
                "The location of a namespace of a metastore cannot be changed",
                hint="create a namespace at the other location, and its tables in it",
            )
        if (_OWNER in removed) != (_OWNER_TYPE in removed):
            raise ValidationError(
                f"{_OWNER} and {_OWNER_TYPE} can only be removed together", hint="name both"
            )
        found = self.client.database(database_of(namespace))
        owner, owner_type = _owner(changed)
        if _OWNER in removed:
            owner, owner_type = current_user(), "USER"
        about_comment = _COMMENT in removed | changed.keys()
        comment = changed.pop(_COMMENT, None if about_comment else found.description)
        gone = removed | ({_COMMENT} if about_comment else set())
        kept = {key: value for key, value in found.parameters.items() if key not in gone}
        altered = replace(
            found,
            description=comment,
            parameters={**kept, **changed},
            owner=owner or found.owner,
            owner_type=owner_type or found.owner_type,
        )
        self.client.alter_database(altered)
        if about_comment:
            self._keep_comment(altered)

    def _keep_comment(self, wanted: HiveDatabase) -> None:
        """Keep the comment as a parameter where the metastore (2.3) keeps the old description."""
        if self.client.database(wanted.name).description != wanted.description:
            parameters = {**wanted.parameters, _COMMENT: wanted.description or ""}
            self.client.alter_database(replace(wanted, parameters=parameters))


def _comment(database: HiveDatabase) -> str | None:
    return database.parameters.get(_COMMENT, database.description)


def _owner(properties: dict[str, str]) -> tuple[str | None, str | None]:
    """Take the pair of owner properties out of ``properties``."""
    owner, kind = properties.pop(_OWNER, None), properties.pop(_OWNER_TYPE, None)
    if kind is not None and owner is None:
        raise ValidationError(f"{_OWNER_TYPE} needs {_OWNER}", hint="set both")
    if kind is not None and kind.upper() not in _OWNER_TYPES:
        raise ValidationError(
            f"{_OWNER_TYPE} is {kind}: one of {', '.join(_OWNER_TYPES)}", hint="set one of these"
        )
    return owner, kind.upper() if kind else None
