"""Avro files of which some values are changed, and nothing else.

The schema, the key-value metadata, the codec and the sync marker stay those of the file, so that
the same change of the same file has the same bytes each time.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any, Final

from icecomb.format.avro.container import (
    SYNC_SIZE,
    ContainerWriter,
    RecordForm,
    parse_container,
    plain_form,
    read_header,
)
from icecomb.format.avro.encoder import encode_string
from icecomb.format.avro.records import damaged, fits_exactly, read_records

_CODECS: Final = {"null": "uncompressed", "zstandard": "zstd", "snappy": "snappy"}
"""What Iceberg calls Avro's codecs; others are written as gzip."""
_OWN: Final = frozenset(("avro.schema", "avro.codec"))


class AvroFile:
    """A manifest or manifest list in memory, whose records use `names` of field ids."""

    def __init__(self, data: bytes, location: str, names: Mapping[int, str]) -> None:
        self._container = parse_container(data, location)
        self._plain = plain_form(self._container, names)
        other = plain_form(self._container, names, fixed_as_bytes=True)
        # as decode_manifest: Iceberg Java 1.11 declares `fixed`, and writes `bytes`
        if other != self._plain and not fits_exactly(self._container, self._plain):
            self._plain = other
        _, at = read_header(data)
        self._sync = data[at : at + SYNC_SIZE]

    def _file(self, records: Iterable[bytes]) -> bytes:
        """Return the file with other encoded records."""
        container = self._container
        codec = container.text("avro.codec") or "null"
        writer = ContainerWriter(
            RecordForm(container.text("avro.schema") or "", _not_encoded),
            {key: container.text(key) or "" for key in container.metadata if key not in _OWN},
            codec=_CODECS.get(codec, "gzip"),
            sync=self._sync,
        )
        for record in records:
            writer.add_encoded(record)
        return writer.finish()


class AvroRecords(AvroFile):
    """The records of a file, to be changed in place."""

    def __init__(self, data: bytes, location: str, names: Mapping[int, str]) -> None:
        super().__init__(data, location, names)
        self.records: list[dict[str, Any]] = read_records(self._container, self._plain)

    def to_bytes(self) -> bytes:
        """Return the file with the records as they are now."""
        return self._file(map(_encoder(self._plain), self.records))


class FilePaths(AvroFile):
    """The paths of the files of a manifest, to be replaced without encoding the entries again.

    Args:
        members: Members of `data_file` to decode, `file_path` among them.
    """

    def __init__(
        self, data: bytes, location: str, names: Mapping[int, str], members: Container[str]
    ) -> None:
        super().__init__(data, location, names)
        self.entries: list[dict[str, Any]] = []
        self._encoded: list[bytes] = []
        for entry, encoded in self._decoded(members):
            self.entries.append(entry)
            self._encoded.append(encoded)

    def to_bytes(self, paths: Sequence[str]) -> bytes:
        """Return the manifest with other paths, one for each entry."""
        return self._file(map(self._replaced, self.entries, self._encoded, paths))

    def _decoded(self, members: Container[str]) -> Iterator[tuple[dict[str, Any], bytes]]:
        import fastavro

        fields = [_with_members(field, members) for field in self._plain["fields"]]
        content = b"".join(self._container.blocks)
        body, start = BytesIO(content), 0
        try:
            written = fastavro.parse_schema(self._plain)
            chosen = fastavro.parse_schema({**self._plain, "fields": fields})
            for _ in range(self._container.record_count):
                entry: Any = fastavro.schemaless_reader(body, written, chosen)
                end = body.tell()
                yield entry, content[start:end]
                start = end
        except Exception as error:  # damaged bytes surface as errors of many kinds
            raise damaged([self._container], error) from error
        if start != len(content):
            raise damaged([self._container], ValueError("they end before the file"))

    def _replaced(self, entry: Mapping[str, Any], encoded: bytes, path: str) -> bytes:
        old = encode_string(entry["data_file"]["file_path"])
        if encoded.count(old) == 1:
            return encoded.replace(old, encode_string(path))
        # another member has the same text
        import fastavro

        record: Any = fastavro.schemaless_reader(
            BytesIO(encoded), fastavro.parse_schema(self._plain), None
        )
        record["data_file"]["file_path"] = path
        return _encoder(self._plain)(record)


def _with_members(field: Mapping[str, Any], members: Container[str]) -> Mapping[str, Any]:
    if field["name"] != "data_file":
        return field
    kept = [member for member in field["type"]["fields"] if member["name"] in members]
    return {**field, "type": {**field["type"], "fields": kept}}


def _encoder(plain: Any) -> Callable[[Any], bytes]:
    """Return a function that encodes what fastavro decoded."""
    import fastavro

    parsed = fastavro.parse_schema(plain)

    def encode(record: Any) -> bytes:
        out = BytesIO()
        fastavro.schemaless_writer(out, parsed, record)
        return out.getvalue()

    return encode


def _not_encoded(_: Any) -> bytes:
    raise NotImplementedError("records are given encoded")
