"""Bytes to table state and back: the Iceberg specification as code.

`spec` holds the nouns of the specification. Below it lie `storage` (files, wherever they are) and
`arrow` (arrays, whatever they mean); above it `avro` and `manifests` (the files of a snapshot),
`expressions`, `evolution` (what changes but rows), `rows` (data and delete files), `scan` (which
files a query reads), `operation` (snapshots made of files), `row_changes` (operations made of rows)
and `inspect` (metadata tables). Each room imports only what is below it.

What is public stands in the stub beside this file, and is loaded at first use: importing one light
thing never loads a heavy library.
"""

from icecomb.format.public_name import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
