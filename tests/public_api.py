"""The public names with their signatures, one a line: ``python -m tests.public_api --write``."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

LIST = Path(__file__).with_name("public_api.txt")
PACKAGES = (
    "icecomb",
    "icecomb.format",
    "icecomb.catalog",
    "icecomb.catalog.migrate",
    "icecomb.spark",
)


def listing() -> str:
    """What `LIST` should say."""
    lines = [line for name in PACKAGES for line in _of_package(import_module(name))]
    return "\n".join(lines) + "\n"


def documented() -> Iterator[tuple[str, Any]]:
    """The public classes, functions and methods, by name."""
    for package in map(import_module, PACKAGES):
        for name in sorted(package.__all__):
            found = getattr(package, name)
            home = f"{package.__name__}.{name}"
            if callable(found):
                yield home, found
            if not inspect.isclass(found):
                continue
            for member, what in _members(found):
                if inspect.isfunction(what) or isinstance(what, property):
                    yield f"{home}.{member}", what


def _of_package(package: ModuleType) -> Iterator[str]:
    for name in sorted(package.__all__):
        found = getattr(package, name)
        home = f"{package.__name__}.{name}"
        if inspect.isclass(found):
            yield from _of_class(home, found)
        elif callable(found):
            yield f"{home}{_signature(found)}"
        else:
            yield f"{home}: {type(found).__name__}"


def _of_class(home: str, found: type[Any]) -> Iterator[str]:
    bases = ", ".join(base.__name__ for base in found.__bases__ if base is not object)
    yield f"class {home}({bases}){_constructor(found)}"
    if issubclass(found, Enum):
        yield from (f"    {home}.{member.name}" for member in found)
    for name, member in _members(found):
        shown = _signature(member) if inspect.isfunction(member) else ""
        yield f"    {home}.{name}{shown}"


def _members(found: type[Any]) -> Iterator[tuple[str, Any]]:
    """The public members that are icecomb's, methods as functions."""
    for name in sorted(dir(found)):
        owner = next((one for one in found.__mro__ if name in vars(one)), None)
        ours = owner is not None and owner.__module__.startswith("icecomb.")
        if (
            name.startswith("_")
            or not ours
            or (issubclass(found, Enum) and name in found.__members__)
        ):
            continue
        member = inspect.getattr_static(found, name)
        if isinstance(member, (staticmethod, classmethod)):
            member = member.__func__
        yield name, member


def _constructor(found: type[Any]) -> str:
    if issubclass(found, Enum) or getattr(found, "_is_protocol", False):
        return ""
    return f" {_signature(found)}"


def _signature(found: Any) -> str:
    try:
        signature = inspect.signature(found)
    except ValueError:  # of a built-in
        return "(...)"
    return re.sub(r" at 0x[0-9a-f]+", "", str(signature))


if __name__ == "__main__":
    if "--write" in sys.argv:
        LIST.write_text(listing())
    else:
        sys.stdout.write(listing())
