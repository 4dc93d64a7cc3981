"""The public names of a package: listed once, in its stub, and loaded at first use.

Type checkers read the stub for what each name is. At run time it is read for the module of each
name, so that importing a package stays light and the two can never differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

_IMPORT: Final = re.compile(r"from (\S+) import|(\w+) as \2\b")


def lazy_names(
    package: str, init: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    ``__init__.pyi`` beside its ``__file__`` re-exports every public name as ``from module import
    Name as Name``.
    """
    modules: dict[str, str] = {}
    module = ""
    for found in _IMPORT.finditer(Path(init).with_suffix(".pyi").read_text(encoding="utf-8")):
        if found[1]:
            module = found[1]
        else:
            modules[found[2]] = module
    names = sorted(modules)

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    def list_names() -> list[str]:
        return names

    return load, list_names, names
