"""The Apache Iceberg table format in Python, on the Hive metastore you already have.

>>> import icecomb
>>> lake = icecomb.load_catalog("local", warehouse="/tmp/lake")  # doctest: +SKIP

Everything else is public in `icecomb.catalog`, `icecomb.format` and `icecomb.spark`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["__version__", "load_catalog"]

if TYPE_CHECKING:
    from icecomb.catalog import load_catalog as load_catalog

    __version__: str
else:
    # At first use: the floors below import this package, too. Unseen by type checkers, to whom a
    # module with a __getattr__ has every name.

    def __getattr__(name: str) -> Any:
        if name == "load_catalog":
            from icecomb.catalog import load_catalog

            return load_catalog
        if name == "__version__":
            from importlib.metadata import version

            return version("icecomb")
        raise AttributeError(f"module 'icecomb' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return __all__
