"""Footers as rows of Arrow, for a plan's files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa

from icecomb.catalog.migrate.source.footer import Footer
from icecomb.format.manifests.encoded_file import DataFileForm
from icecomb.format.rows.files.described_file import FileProblem
from icecomb.format.rows.values.arrow_projection import FileField
from icecomb.format.rows.values.unread_field import UnreadField

_FILE: Final = [
    ("path", pa.string()),
    ("size", pa.int64()),
    ("mtime", pa.int64()),
    ("file_id", pa.int64()),
]
_FOOTER: Final = [("record", pa.binary()), ("rows", pa.int64())]
LISTED: Final = pa.schema([*_FILE, ("place", pa.int32())])
"""A listed file, and the number of its folder."""
PLANNED: Final = pa.schema([*LISTED, *_FOOTER])
"""The same with the file's record for manifests; null if its footer was not read."""


class FooterRow(NamedTuple):
    """The contents of one file's footer, encoded.

    Attributes:
        record: The file's record for manifests; None if it cannot be taken over.
        rows: Number of rows; None if it cannot be taken over.
        spellings: The file's spelling of fields, as text.
        unread: The fields of the file that the table lacks, as text; empty if there are none.
        zone: The time zone of its writer; see `Footer`.
        remarks: What Hive may show otherwise, as text; empty if there is nothing.
    """

    record: bytes | None
    rows: int | None
    spellings: str
    unread: str
    zone: str = ""
    remarks: str = ""
    problems: tuple[FileProblem, ...] = ()

    @classmethod
    def of(cls, footer: Footer, form: DataFileForm) -> FooterRow:
        """Return a footer as a row."""
        file = footer.data_file
        record = None
        if file is not None and len(file.partition) == len(form.spec.fields):
            record = form.encode(file).record
        return cls(
            record,
            None if file is None else file.record_count,
            _text(list(footer.spellings.items())),
            _text([[one.parent_id, _of_field(one.field)] for one in footer.unread])
            if footer.unread
            else "",
            footer.zone,
            _text(footer.remarks) if footer.remarks else "",
            footer.problems,
        )


def spellings_of(text: str) -> Mapping[int, str]:
    """Parse a file's spellings by field id."""
    return dict(json.loads(text))


def unread_of(text: str) -> Iterable[UnreadField]:
    """Parse the fields of a file that the table lacks: names and ids, not types."""
    for parent, raw in json.loads(text):
        yield UnreadField(parent, _to_field(raw))


def remarks_of(text: str) -> Iterable[tuple[str, str]]:
    """Parse the remarks on a file: the code of a finding, and a column."""
    return [(code, column) for code, column in json.loads(text)]


def _of_field(field: FileField) -> list[Any]:
    inner = [_of_field(child) for child in field.children]
    return [field.name, pa.types.is_struct(field.arrow_type), field.field_id, field.by_name, inner]


def _to_field(raw: list[Any]) -> FileField:
    name, is_struct, field_id, by_name, inner = raw
    children = tuple(map(_to_field, inner))
    kind = pa.struct([(child.name, pa.null()) for child in children]) if is_struct else pa.null()
    return FileField(name, kind, field_id, children, (), by_name)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
