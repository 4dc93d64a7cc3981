"""Catalogs: the holders of the pointer to a table's current metadata file.

>>> lake = load_catalog("local", warehouse="/tmp/lake")  # doctest: +SKIP
>>> lake.load_table("sales.orders").scan("amount > 100").to_arrow()  # doctest: +SKIP

Public names are declared in the stub beside this file, and are loaded at first use.
"""

from icecomb.format.public_name import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
