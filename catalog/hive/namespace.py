"""The properties of a database of a Hive metastore as a namespace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from icecomb.catalog.hive.settlement import pauses
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import HiveDatabase
from icecomb.format.argument import checked_members, property_texts
from icecomb.format.cancellation import rest
from icecomb.format.errors import (
    MetastoreError,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    ValidationError,
)

_COMMENT: Final = "comment"
_LOCATION: Final = "location"
_OWNER: Final = "hive.metastore.database.owner"
_OWNER_TYPE: Final = "hive.metastore.database.owner-type"
_OWNER_TYPES: Final = ("USER", "GROUP", "ROLE")


def new_database(
    name: str, properties: Mapping[str, str] | None, warehouse: str | None, user: str
) -> HiveDatabase:
    """Return the database of a new namespace, by default in its own folder in ``warehouse``.

    Its owner is ``user`` where the properties name none.
    """
    given = property_texts("property of a namespace", properties)
    owner, owner_type = _owner(given)
    location = given.pop(_LOCATION, None)
    if location is None and warehouse:
        location = f"{warehouse.rstrip('/')}/{name}.db"
    return HiveDatabase(
        name=name,
        description=given.pop(_COMMENT, None),
        location=location,
        parameters=given,
        owner=owner or user,
        owner_type=owner_type or "USER",
    )


def is_created(client: HiveClient, wanted: HiveDatabase, properties: Mapping[str, str]) -> bool:
    """Return whether a database was created whose creation was not answered.

    NamespaceAlreadyExistsError is raised if the name is that of another one.
    """
    for found in _looks(client, wanted.name, properties):
        if found is not None:
            if not _is_as_wanted(found, wanted):
                raise NamespaceAlreadyExistsError(
                    f"The namespace {wanted.name} exists already, with other properties",
                    hint="use it, or choose another name",
                    namespace=wanted.name,
                )
            return True
    return False


def is_dropped(client: HiveClient, name: str, properties: Mapping[str, str]) -> bool:
    """Return whether a database was dropped whose drop was not answered; see `is_created`."""
    return any(found is None for found in _looks(client, name, properties))


def _looks(
    client: HiveClient, name: str, properties: Mapping[str, str]
) -> Iterator[HiveDatabase | None]:
    """Yield the database at each look, None if there is none; a look that fails yields nothing."""
    for pause in pauses(properties):
        if pause and not rest(pause):
            return
        with suppress(MetastoreError):
            try:
                found = client.database(name)
            except NoSuchNamespaceError:
                yield None
            else:
                yield found


def _is_as_wanted(found: HiveDatabase, wanted: HiveDatabase) -> bool:
    # a server completes a location by its own scheme and authority
    place, asked = (urlsplit(each.location or "").path.rstrip("/") for each in (found, wanted))
    return (wanted.location is None or place == asked) and (
        wanted.parameters.items() <= found.parameters.items()
        and (found.description or None) == (wanted.description or None)
        and found.owner == wanted.owner
    )


def namespace_properties(database: HiveDatabase) -> dict[str, str]:
    """Return the properties for `Catalog.load_namespace_properties`."""
    comment = database.parameters.get(_COMMENT, database.description)
    shown = {key: value for key, value in database.parameters.items() if key != _COMMENT}
    if database.location:
        shown[_LOCATION] = database.location
    if comment:
        shown[_COMMENT] = comment
    if database.owner:
        shown[_OWNER] = database.owner
        shown[_OWNER_TYPE] = database.owner_type or "USER"
    return shown


def altered_database(
    found: HiveDatabase,
    removals: Iterable[str],
    updates: Mapping[str, str] | None,
    user: str,
) -> HiveDatabase:
    """Return the altered database; see `Catalog.update_namespace_properties`.

    Removing the owner makes ``user`` the owner.
    """
    removed = set(checked_members("properties to remove", removals, str))
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
    owner, owner_type = _owner(changed)
    if _OWNER in removed:
        owner, owner_type = user, "USER"
    about_comment = _COMMENT in removed | changed.keys()
    comment = changed.pop(_COMMENT, None if about_comment else found.description)
    gone = removed | ({_COMMENT} if about_comment else set())
    kept = {key: value for key, value in found.parameters.items() if key not in gone}
    return replace(
        found,
        description=comment,
        parameters={**kept, **changed},
        owner=owner or found.owner,
        owner_type=owner_type or found.owner_type,
    )


def with_comment(database: HiveDatabase) -> HiveDatabase:
    """Return the database with its comment as a parameter, for a metastore that ignores it."""
    comment = {_COMMENT: database.description or ""}
    return replace(database, parameters={**database.parameters, **comment})


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
