"""Selection of a catalog's tables: by name, by pattern, by namespace, or all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from icecomb.catalog.identifier import Identifier, name_pattern, parts_of
from icecomb.format.errors import NoSuchNamespaceError, NoSuchTableError

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog

ALL: Final = "*"
"""The name that means every table of every namespace."""


def select_tables(
    catalog: Catalog, names: Iterable[str | tuple[str, ...]]
) -> tuple[Identifier, ...]:
    """Return the tables matching names and patterns, as in `check_health`, each once."""
    found: dict[Identifier, None] = {}
    for name in names:
        parts = parts_of(name)
        if parts == (ALL,):
            chosen = list(_everything(catalog, ()))
        elif len(parts) > 1 and not any(ALL in part for part in parts):
            chosen = [parts]
        else:
            pattern = (*parts, ALL) if len(parts) == 1 else parts
            chosen = list(_matching(catalog, pattern))
            if not chosen:
                raise NoSuchTableError(
                    f"No Iceberg table matches {'.'.join(pattern)}",
                    hint="A * matches any characters: DB.*, DB.sales_*.",
                )
        found.update(dict.fromkeys(chosen))
    return tuple(found)


def _everything(catalog: Catalog, above: Identifier) -> Iterator[Identifier]:
    for namespace in sorted(catalog.list_namespaces(above)):
        with suppress(NoSuchNamespaceError):  # it was dropped meanwhile
            yield from sorted(catalog.list_tables(namespace))
            if catalog.has_levels:
                yield from _everything(catalog, namespace)


def _matching(catalog: Catalog, pattern: Identifier) -> Iterator[Identifier]:
    # A metastore folds names to lower case, folders do not.
    folded = pattern if catalog.has_levels else tuple(part.lower() for part in pattern)
    wanted = name_pattern(folded[-1])
    for namespace in _namespaces(catalog, (), folded[:-1]):
        for table in sorted(catalog.list_tables(namespace)):
            if wanted.fullmatch(table[-1]):
                yield table


def _namespaces(catalog: Catalog, above: Identifier, pattern: Identifier) -> Iterator[Identifier]:
    """Yield the namespaces of a pattern; a name without a wildcard needs no search."""
    if not pattern:
        yield above
        return
    first, rest = pattern[0], pattern[1:]
    if ALL not in first:
        yield from _namespaces(catalog, (*above, first), rest)
        return
    for namespace in sorted(catalog.list_namespaces(above)):
        if name_pattern(first).fullmatch(namespace[-1]):
            yield from _namespaces(catalog, namespace, rest)
