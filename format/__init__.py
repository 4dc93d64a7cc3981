"""Bytes to table state and back: the Iceberg specification as code.

`spec` holds the nouns of the specification. Below it are `storage` (files, wherever they are) and
`arrow` (arrays, whatever they mean); above it `avro` and `manifests` (the files of a snapshot),
`expressions`, `evolution` (changes of anything but rows), `rows` (data and delete files), `scan`
(the files that a query reads), `operation` (snapshots made from files), `row_changes` (operations
made from rows) and `inspect` (metadata tables). Each room imports only what is below it.

The public names are listed in the stub beside this file and loaded at first use: importing a light
one never loads a heavy library.
"""

from icecomb.format.public_name import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
