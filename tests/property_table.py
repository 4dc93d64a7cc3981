"""The tables of properties in docs/properties.md: ``python -m tests.property_table --write``."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from icecomb.catalog.configuration.catalog_property import CATALOG_PROPERTIES
from icecomb.format.property.property import DURATION, Property
from icecomb.format.property.table_property import TABLE_PROPERTIES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "properties.md"
TABLES: dict[str, Mapping[str, Property[Any]]] = {
    "catalogs": CATALOG_PROPERTIES,
    "tables": TABLE_PROPERTIES,
}
"""What there are properties of."""


def table(owner: str) -> str:
    """One line for each property."""
    known = (one for _, one in sorted(TABLES[owner].items()))
    rows = [f"| {_name(one)} | {_default(one)} | {one.about} {_accepted(one)} |" for one in known]
    return "\n".join(["| property | default | meaning |", "| --- | --- | --- |", *rows])


def in_page(owner: str) -> str:
    """What the page says now."""
    found = _place(owner).search(PAGE.read_text())
    assert found is not None, "the page has lost the place of the table"
    return found[0]


def _place(owner: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=<!-- properties of {owner} -->\n\n).*?(?=\n\n<!-- end -->)", re.DOTALL)


def _name(known: Property[object]) -> str:
    column = "<column>" if known.key.endswith(".") else ""
    return ", ".join(f"`{name}{column}`" for name in (known.key, *known.also))


def _default(known: Property[object]) -> str:
    value = known.default
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):
        return f"`{value:g}{'s' if known.accepted.startswith(DURATION) else ''}`"
    return "" if value is None or not str(value) else f"`{value}`"


def _accepted(known: Property[object]) -> str:
    return f"Value: {known.accepted}."


if __name__ == "__main__":
    for each in TABLES:
        if "--write" in sys.argv:
            written, text = table(each), PAGE.read_text()
            PAGE.write_text(_place(each).sub(lambda _, text=written: text, text))
        else:
            sys.stdout.write(f"{table(each)}\n")
