"""Bytes to table state and back: the Iceberg specification as code.

Here lie types, schemas, partitioning, sorting, snapshots, and the metadata that hold them together.
Around them: `avro` and `manifests` (the files of a snapshot), `expressions` and `scan` (which files
a query reads), `rows` (data and delete files), `operation` (snapshots made of files), `row_changes`
(operations made of rows), `evolution` (everything else that changes), `inspect` (metadata tables).

What is public stands in the stub beside this file, and is loaded at first use: importing one light
thing never loads a heavy library.
"""

from icecomb.format.public_name import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
