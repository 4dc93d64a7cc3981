"""Execution of statements: one commit each, or none if nothing changes.

The grammar of statements, from the word after the table's name to the end.

It follows that of Iceberg's SQL extensions for Spark (``IcebergSqlExtensions.g4``), rule by rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from icecomb.catalog.table.ref_change import DropRef, MakeRef, drop_ref, make_ref
from icecomb.format.errors import ValidationError
from icecomb.format.property.table_property import DISTRIBUTION_MODE
from icecomb.format.spec.sort import NullOrder
from icecomb.spark.partitioning import iceberg_transform

if TYPE_CHECKING:
    from icecomb.catalog.table.transaction import Transaction
    from icecomb.format.evolution.spec_update import UpdateSpec
    from icecomb.format.spec.transform import Transform


def change_by_statement(transaction: Transaction, text: str, *, case_sensitive: bool) -> None:
    """Apply the change of a statement, the text after ``ALTER TABLE name``, to a transaction."""
    change = _Change(transaction, case_sensitive=case_sensitive)
    match parse_statement(text):
        case AddPartitionField() as statement:
            change.add_partition_field(statement)
        case DropPartitionField() as statement:
            change.drop_partition_field(statement)
        case ReplacePartitionField() as statement:
            change.replace_partition_field(statement)
        case SetWriteOrder() as statement:
            change.set_write_order(statement)
        case SetIdentifierFields() as statement:
            change.set_identifier_fields(tuple(map(".".join, statement.columns)))
        case DropIdentifierFields() as statement:
            change.drop_identifier_fields(statement.columns)
        case MakeRef() as statement:
            make_ref(transaction, statement)
        case DropRef() as statement:
            drop_ref(transaction, statement)


class _Change:
    """One statement on one table."""

    def __init__(self, transaction: Transaction, *, case_sensitive: bool) -> None:
        self._transaction = transaction
        self._case_sensitive = case_sensitive

    def add_partition_field(self, statement: AddPartitionField) -> None:
        with self._transaction.update_spec(self._case_sensitive) as update:
            _add(update, statement.term, statement.name)

    def drop_partition_field(self, statement: DropPartitionField) -> None:
        with self._transaction.update_spec(self._case_sensitive) as update:
            update.remove_field(self._partition_field(statement.term))

    def replace_partition_field(self, statement: ReplacePartitionField) -> None:
        with self._transaction.update_spec(self._case_sensitive) as update:
            update.remove_field(self._partition_field(statement.term))
            _add(update, statement.replacement, statement.name)

    def _partition_field(self, term: Term) -> str:
        """Return the name of the partition field that a term refers to.

        A word that is not a column is the name itself, as in Iceberg Java.
        """
        schema, spec = self._transaction.metadata.schema(), self._transaction.metadata.spec()
        word = term.plain_name
        if word is not None and not schema.contains(word, case_sensitive=self._case_sensitive):
            return word
        transform, column = _source(term)
        source = schema.find_field(column, self._case_sensitive)
        for field in spec.fields:
            if (field.source_id, field.transform) == (source.field_id, transform):
                return field.name
        shown = ", ".join(
            f"{field.transform}({schema.find_column_name(field.source_id)}) as {field.name}"
            for field in spec.fields
        )
        raise ValidationError(
            f"The table has no partition field {transform} of column {column!r}",
            hint=f"Its partition fields are {shown}." if shown else "It is not partitioned.",
        )

    def set_write_order(self, statement: SetWriteOrder) -> None:
        with self._transaction.update_sort_order(self._case_sensitive) as update:
            for key in statement.order:
                transform, column = _source(key.term)
                nulls = NullOrder.NULLS_FIRST if key.nulls_first else NullOrder.NULLS_LAST
                (update.desc if key.descending else update.asc)(column, transform, nulls)
        if statement.distribution is not None:
            self._transaction.set_properties({DISTRIBUTION_MODE.key: statement.distribution})

    def set_identifier_fields(self, names: tuple[str, ...]) -> None:
        with self._transaction.update_schema(case_sensitive=self._case_sensitive) as update:
            update.set_identifier_fields(*names)

    def drop_identifier_fields(self, columns: tuple[Column, ...]) -> None:
        schema = self._transaction.metadata.schema()
        kept = {i: schema.find_column_name(i) or "" for i in schema.identifier_field_ids}
        for column in map(".".join, columns):
            found = schema.find_field(column, self._case_sensitive).field_id
            if kept.pop(found, None) is None:
                names = ", ".join(sorted(map(str, schema.identifier_field_names())))
                raise ValidationError(
                    f"Column {column!r} is not an identifier field",
                    hint=f"Identifier fields are {names}." if names else "The table has none.",
                )
        self.set_identifier_fields(tuple(kept.values()))


def _add(update: UpdateSpec, term: Term, name: str | None) -> None:
    transform, column = _source(term)
    update.add_field(column, transform, name)


def _source(term: Term) -> tuple[Transform, str]:
    """Return Iceberg's transform of a term, and its column."""
    transform, column = iceberg_transform(term.to_spark())
    return transform, ".".join(column)


Column = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """A transform of columns, or a plain column.

    Args:
        transform: The name of the transform, ``identity`` for a plain column.
        columns: The columns in its arguments, as name parts.
        constants: Its other arguments.
    """

    transform: str
    columns: tuple[Column, ...]
    constants: tuple[Any, ...] = ()

    def to_spark(self) -> dict[str, Any]:
        """Return the term in the bridge's form of transforms."""
        arguments = [{"value": constant} for constant in self.constants]
        named = [{"column": list(column)} for column in self.columns]
        return {"name": self.transform, "arguments": arguments + named}

    @property
    def plain_name(self) -> str | None:
        """The term if it is one word, which may name a partition field; None otherwise."""
        one_word = self.transform == "identity" and [len(c) for c in self.columns] == [1]
        return self.columns[0][0] if one_word and not self.constants else None


@dataclass(frozen=True, slots=True)
class AddPartitionField:
    """``ADD PARTITION FIELD term [AS name]``."""

    term: Term
    name: str | None = None


@dataclass(frozen=True, slots=True)
class DropPartitionField:
    """``DROP PARTITION FIELD term``."""

    term: Term


@dataclass(frozen=True, slots=True)
class ReplacePartitionField:
    """``REPLACE PARTITION FIELD term WITH replacement [AS name]``."""

    term: Term
    replacement: Term
    name: str | None = None


@dataclass(frozen=True, slots=True)
class WriteOrderKey:
    """A sort key, with nulls first or last."""

    term: Term
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class SetWriteOrder:
    """``WRITE …``: the distribution and order of written rows.

    Args:
        distribution: The new value of ``write.distribution-mode``; None to leave it unchanged.
        order: The sort order; unsorted without keys.
    """

    distribution: Literal["none", "hash", "range"] | None
    order: tuple[WriteOrderKey, ...] = ()


@dataclass(frozen=True, slots=True)
class SetIdentifierFields:
    """``SET IDENTIFIER FIELDS columns``."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class DropIdentifierFields:
    """``DROP IDENTIFIER FIELDS columns``."""

    columns: tuple[Column, ...]


Statement = (
    AddPartitionField
    | DropPartitionField
    | ReplacePartitionField
    | SetWriteOrder
    | SetIdentifierFields
    | DropIdentifierFields
    | MakeRef
    | DropRef
)


T = TypeVar("T")

_UNITS_MS: Final = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000}
_FORMS: Final = {
    "PARTITION": (
        "ADD PARTITION FIELD transform [AS name], DROP PARTITION FIELD transform, "
        "REPLACE PARTITION FIELD transform WITH transform [AS name]"
    ),
    "IDENTIFIER": "SET IDENTIFIER FIELDS column, ..., DROP IDENTIFIER FIELDS column, ...",
    "WRITE": (
        "WRITE [DISTRIBUTED BY PARTITION] [[LOCALLY] ORDERED BY transform [ASC|DESC] "
        "[NULLS FIRST|LAST], ...], WRITE UNORDERED"
    ),
    "BRANCH": (
        "CREATE BRANCH [IF NOT EXISTS] name, [CREATE OR] REPLACE BRANCH name, each with "
        "[AS OF VERSION n] [RETAIN n DAYS|HOURS|MINUTES] [WITH SNAPSHOT RETENTION [n SNAPSHOTS] "
        "[n DAYS|HOURS|MINUTES]]; DROP BRANCH [IF EXISTS] name"
    ),
    "TAG": (
        "CREATE TAG [IF NOT EXISTS] name, [CREATE OR] REPLACE TAG name, each with "
        "[AS OF VERSION n] [RETAIN n DAYS|HOURS|MINUTES]; DROP TAG [IF EXISTS] name"
    ),
}


def parse_statement(text: str) -> Statement:
    """Parse a statement, the text after ``ALTER TABLE name``."""
    return _Parser(text).statement()


class _Parser:
    """A recursive descent parser with a lookahead of one token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(tokens(text))
        self._next = 0

    def statement(self) -> Statement:
        """Parse the whole text."""
        statement = self._one_of(
            (("ADD", "PARTITION", "FIELD"), self._add_partition_field),
            (("DROP", "PARTITION", "FIELD"), lambda: DropPartitionField(self._term())),
            (("REPLACE", "PARTITION", "FIELD"), self._replace_partition_field),
            (("WRITE",), self._write_order),
            (("SET", "IDENTIFIER", "FIELDS"), lambda: SetIdentifierFields(self._columns())),
            (("DROP", "IDENTIFIER", "FIELDS"), lambda: DropIdentifierFields(self._columns())),
            (("CREATE", "OR", "REPLACE"), lambda: self._make_ref(create=True, replace=True)),
            (("CREATE",), lambda: self._make_ref(create=True, replace=False)),
            (("REPLACE",), lambda: self._make_ref(create=False, replace=True)),
            (("DROP",), self._drop_ref),
        )
        while self._take(";"):
            pass
        if self._peek() is not END:
            raise self._unexpected("the end of the statement")
        return statement

    def _add_partition_field(self) -> AddPartitionField:
        return AddPartitionField(self._term(), self._alias())

    def _replace_partition_field(self) -> ReplacePartitionField:
        term = self._term()
        self._expect("WITH")
        return ReplacePartitionField(term, self._term(), self._alias())

    def _alias(self) -> str | None:
        return self._name() if self._take("AS") else None

    def _write_order(self) -> SetWriteOrder:
        hashed = False
        ordering: SetWriteOrder | None = None
        while not self._at_end():
            if self._take("DISTRIBUTED", "BY", "PARTITION"):
                self._once("DISTRIBUTED BY", given=hashed)
                hashed = True
                continue
            found = self._ordering()
            self._once("an order", given=ordering is not None)
            ordering = found
        if hashed:
            return SetWriteOrder("hash", () if ordering is None else ordering.order)
        if ordering is None:
            raise self._unexpected("DISTRIBUTED BY PARTITION, [LOCALLY] ORDERED BY or UNORDERED")
        return ordering

    def _ordering(self) -> SetWriteOrder:
        if self._take("UNORDERED"):
            return SetWriteOrder("none")
        if self._take("LOCALLY", "ORDERED", "BY"):
            return SetWriteOrder(None, self._order())
        if self._take("ORDERED", "BY"):
            return SetWriteOrder("range", self._order())
        raise self._unexpected("DISTRIBUTED BY PARTITION, [LOCALLY] ORDERED BY or UNORDERED")

    def _order(self) -> tuple[WriteOrderKey, ...]:
        if not self._take("("):
            return self._list(self._sort_key)
        keys = self._list(self._sort_key)
        self._expect(")")
        return keys

    def _sort_key(self) -> WriteOrderKey:
        term = self._term()
        descending = self._take("DESC")
        if not descending:
            self._take("ASC")
        nulls_first = not descending
        if self._take("NULLS"):
            nulls_first = self._take("FIRST")
            if not nulls_first:
                self._expect("LAST")
        return WriteOrderKey(term, descending, nulls_first)

    def _make_ref(self, *, create: bool, replace: bool) -> MakeRef:
        kind = self._kind()
        absent = create and not replace and self._take("IF", "NOT", "EXISTS")
        name = self._name()
        snapshot = self._count() if self._take("AS", "OF", "VERSION") else None
        age = self._duration() if self._take("RETAIN") else None
        kept = oldest = None
        if kind == "branch" and self._take("WITH", "SNAPSHOT", "RETENTION"):
            kept, oldest = self._snapshot_retention()
        return MakeRef(kind, name, create, replace, absent, snapshot, age, kept, oldest)

    def _snapshot_retention(self) -> tuple[int | None, int | None]:
        number = self._count()
        if not self._take("SNAPSHOTS"):
            return None, number * self._unit()
        return number, self._duration() if self._peek().kind == "number" else None

    def _drop_ref(self) -> DropRef:
        kind = self._kind()
        return DropRef(kind, if_exists=self._take("IF", "EXISTS"), name=self._name())

    def _kind(self) -> Literal["branch", "tag"]:
        if self._take("BRANCH"):
            return "branch"
        self._expect("TAG", "BRANCH or TAG")
        return "tag"

    def _term(self) -> Term:
        column = self._column()
        if len(column) > 1 or not self._take("("):
            return Term("identity", (column,))
        arguments = self._list(self._argument)
        self._expect(")")
        return Term(
            column[0],
            tuple(a for a in arguments if isinstance(a, tuple)),
            tuple(a for a in arguments if not isinstance(a, tuple)),
        )

    def _argument(self) -> Column | int | float | str:
        token = self._peek()
        if token.is_name:
            return self._column()
        self._next += 1
        if token.kind == "number":
            return int(token.text.rstrip("LSYlsy"))
        if token.kind == "decimal":
            return float(token.text.rstrip("BDFbdf"))
        if token.kind == "string":
            return token.text
        self._next -= 1
        raise self._unexpected("a column or a number")

    def _columns(self) -> tuple[Column, ...]:
        return self._list(self._column)

    def _column(self) -> Column:
        parts = [self._name()]
        while self._take("."):
            parts.append(self._name())
        return tuple(parts)

    def _name(self) -> str:
        token = self._peek()
        if not token.is_name:
            raise self._unexpected("a name")
        self._next += 1
        return token.text

    def _duration(self) -> int:
        return self._count() * self._unit()

    def _unit(self) -> int:
        for unit, milliseconds in _UNITS_MS.items():
            if self._take(unit):
                return milliseconds
        raise self._unexpected("DAYS, HOURS or MINUTES")

    def _count(self) -> int:
        token = self._peek()
        if token.kind != "number" or not token.text.lstrip("-").isdecimal():
            raise self._unexpected("a number")
        self._next += 1
        return int(token.text)

    def _list(self, element: Callable[[], T]) -> tuple[T, ...]:
        found = [element()]
        while self._take(","):
            found.append(element())
        return tuple(found)

    def _one_of(self, *rules: tuple[tuple[str, ...], Callable[[], Statement]]) -> Statement:
        for keywords, rule in rules:
            if self._take(*keywords):
                return rule()
        raise self._unexpected("a change that the table takes")

    def _take(self, *keywords: str) -> bool:
        """Consume keywords if they come next; return whether they did."""
        ahead = self._tokens[self._next : self._next + len(keywords)]
        came = len(ahead) == len(keywords) and all(map(StatementToken.says, ahead, keywords))
        self._next += len(keywords) if came else 0
        return came

    def _expect(self, keyword: str, shown: str | None = None) -> None:
        if not self._take(keyword):
            raise self._unexpected(shown or keyword)

    def _peek(self) -> StatementToken:
        return self._tokens[self._next]

    def _at_end(self) -> bool:
        return self._peek() is END or self._peek().says(";")

    def _once(self, what: str, *, given: bool) -> None:
        if given:
            raise StatementError(
                f"The statement gives {what} twice: {self._text}", hint=f"Write {_FORMS['WRITE']}."
            )

    def _unexpected(self, wanted: str) -> StatementError:
        first = (token.text.upper() for token in self._tokens[:4] if token.kind == "word")
        form = next((form for word in first for key, form in _FORMS.items() if word == key), None)
        return StatementError(
            f"Cannot read the statement {self._text!r}: {wanted} should stand where "
            f"{self._peek()} is",
            hint=f"Write {form or '; '.join(_FORMS.values())}.",
        )


_TOKEN: Final = re.compile(
    r"""(?P<gap>\s+|--[^\r\n]*|/\*(?!\+).*?\*/)
    |(?P<number>-?\d+(?:[LSY](?!\w)|(?![\w.])))
    |(?P<decimal>-?(?:\d+\.\d*|\.\d+|\d+(?=E))(?:E[+-]?\d+)?(?:BD|D|F)?(?!\w))
    |(?P<word>\w+)
    |(?P<quoted>`(?:[^`]|``)*`)
    |(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<symbol>.)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)

Kind = Literal["number", "decimal", "word", "quoted", "string", "symbol", "end"]


class StatementError(ValidationError):
    """A statement cannot be read."""


@dataclass(frozen=True, slots=True)
class StatementToken:
    """A word, number, string or symbol.

    Args:
        kind: The kind; ``quoted`` is a word in backquotes.
        text: The original text, without the quotes of quoted words and strings.
    """

    kind: Kind
    text: str

    def says(self, keyword: str) -> bool:
        """Return whether it is this keyword or symbol; quoted tokens never are."""
        return self.kind in {"word", "symbol"} and self.text.upper() == keyword

    @property
    def is_name(self) -> bool:
        """Whether it can be a name; no keyword of this grammar is reserved."""
        return self.kind in {"word", "quoted"}

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)


END: Final = StatementToken("end", "")


def tokens(text: str) -> Iterator[StatementToken]:
    """Yield the tokens of a text, without comments; `END` is the last."""
    for match in _TOKEN.finditer(text):
        kind, found = cast("Kind", match.lastgroup), match[0]
        if match["gap"]:
            continue
        if kind == "quoted":
            found = found[1:-1].replace("``", "`")
            if not found:
                raise StatementError("A name is empty: ``", hint="Write a name between the quotes.")
        elif kind == "string":
            found = _ESCAPE.sub(r"\1", found[1:-1])
        yield StatementToken(kind, found)
    yield END
