"""The table of properties in docs/configuration.md: ``python -m tests.property_table --write``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from icecomb.format.manifests import cache as manifest_cache
from icecomb.format.spec.property import Property
from icecomb.format.spec.table_property import TABLE_PROPERTIES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"
_PLACE = re.compile(r"(?<=<!-- properties of tables -->\n\n).*?(?=\n\n<!-- end -->)", re.DOTALL)


def table() -> str:
    """One line for each property."""
    of_files = [one for one in vars(manifest_cache).values() if isinstance(one, Property)]
    known = sorted([*TABLE_PROPERTIES.values(), *of_files], key=lambda one: one.key)
    rows = [f"| `{_name(one)}` | {_default(one)} | {one.about} {_accepted(one)} |" for one in known]
    return "\n".join(["| property | default | meaning |", "| --- | --- | --- |", *rows])


def in_page() -> str:
    """What the page says now."""
    found = _PLACE.search(PAGE.read_text())
    assert found is not None, "the page has lost the place of the table"
    return found[0]


def _name(known: Property[object]) -> str:
    return f"{known.key}<column>" if known.key.endswith(".") else known.key


def _default(known: Property[object]) -> str:
    value = known.default
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return "" if value is None else f"`{value}`"


def _accepted(known: Property[object]) -> str:
    return f"May be {known.accepted}."


if __name__ == "__main__":
    if "--write" in sys.argv:
        text = PAGE.read_text()
        PAGE.write_text(_PLACE.sub(lambda _: table(), text))
    else:
        sys.stdout.write(f"{table()}\n")
