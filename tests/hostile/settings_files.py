"""Parsers of files on this machine: Hadoop's and icecomb's settings, tokens, a metastore's announcement."""

from __future__ import annotations

import os
from pathlib import Path

from icecomb.catalog.configuration.configuration import read_catalog_files
from icecomb.catalog.configuration.metastore_folder import MetastoreFolder
from icecomb.format.errors import IcecombError
from icecomb.format.storage.delegation_token import DelegationToken, find_tokens, token_file
from icecomb.format.storage.site_file import read_site_files
from tests.hostile.mutation import DEEP, JSON, TEXT, XML, changed_bytes
from tests.hostile.parser import Parser, Sound


def hive_site(made: Sound) -> Parser:
    path = made.metadata.parent / "hive-site.xml"
    one = "<property><name>a</name><value>b</value><final>true</final></property>"
    seed = f'<?xml version="1.0"?><configuration>{one * 3}</configuration>'.encode()
    deep = b"<configuration>" + b"<a>" * 200_000 + b"</a>" * 200_000 + b"</configuration>"

    def read(data: bytes) -> object:
        path.write_bytes(data)
        return read_site_files([path])

    return Parser([seed], read, XML, lambda: (deep,))


def token_files(made: Sound) -> Parser:
    """Hadoop's files of delegation tokens, and the same tokens as texts."""
    path = made.metadata.parent / "tokens"
    token = DelegationToken(b"i" * 200, b"p", "h:8020")
    seed = token_file(token, "HDFS_DELEGATION_TOKEN")

    def read(data: bytes) -> object:
        path.write_bytes(data)
        found = find_tokens(str(path))
        return [DelegationToken.of_url_text(one.url_text) for one in found]

    return Parser(
        [seed], read, (changed_bytes,), lambda: (seed[:5] + b"\x84\x7f\xff\xff\xff" + bytes(9),)
    )


def token_text(made: Sound) -> Parser:
    path = made.metadata.parent / "token"
    path.write_bytes(token_file(DelegationToken(b"i" * 200, b"p", "h:8020"), "K"))
    (token,) = find_tokens(str(path))
    seed = token.url_text.encode()

    def read(data: bytes) -> object:
        return DelegationToken.of_url_text(data.decode("utf-8", "replace"))

    return Parser([seed], read, TEXT)


def catalog_file(made: Sound) -> Parser:
    """`icecomb.yaml`."""
    folder = made.metadata.parent / "own"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / "icecomb.yaml"
    seed = b"""default-catalog: lake
catalog:
  lake: {uri: "thrift://h:9083", warehouse: /w, clients: 4, x: [1, a], t: true}
  other: &o
    type: hadoop
    hive: {metastore: {uris: 'thrift://h'}}
    when: 2024-01-01
    none: ~
"""
    deep = [b"a: " + b"[" * n + b"]" * n for n in (100, 5000, 100_000)]
    deep += [b"a: " + b"{a: " * n + b"}" * n for n in (100, 5000, 100_000)]
    deep += [b"catalog: &a {b: *a}", b"a: &x [b,b]\nb: &y [*x,*x]\nc: [*y,*y]\n"]
    lines = [b"l0: &l0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [b"l%d: &l%d [%s]" % (n, n, b",".join([b"*l%d" % (n - 1)] * 10)) for n in range(1, 12)]
    laughs = b"catalog:\n  a:\n    " + b"\n    ".join(lines) + b"\n"

    def read(data: bytes) -> object:
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(data)
        return read_catalog_files((path,))

    return Parser([seed], read, TEXT, lambda: (*deep, laughs))


def announcement(made: Sound) -> Parser:
    """What a metastore of one's own says about itself; what cannot be read is none."""
    folder = MetastoreFolder(Path(made.metadata).parent / "warehouse")
    folder.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    seed = (
        b'{"name": "icecomb-0123456789abcdef0123456789abcdef", "pid": %d, "port": 9083}'
        % os.getpid()
    )

    def read(data: bytes) -> object:
        folder.state.write_bytes(data)
        found = folder.announced()
        if found is None:
            raise IcecombError("it says nothing")
        return found.to_json()

    return Parser([seed], read, JSON, lambda: DEEP)
