"""The grammar of statements: what is written is what is read, however it is written."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from icecomb.catalog.table.ref_change import DropRef, MakeRef
from icecomb.format.errors import ValidationError
from icecomb.spark.planner.statements.change import (
    AddPartitionField,
    DropIdentifierFields,
    DropPartitionField,
    ReplacePartitionField,
    SetIdentifierFields,
    SetWriteOrder,
    Term,
    WriteOrderKey,
    parse_statement,
)

DAY = 86_400_000
ID = Term("identity", (("id",),))

# the statements of Iceberg's documentation for Spark (docs/spark-ddl.md), and what they mean there
DOCUMENTED = {
    "ADD PARTITION FIELD catalog": AddPartitionField(Term("identity", (("catalog",),))),
    "ADD PARTITION FIELD bucket(16, id)": AddPartitionField(Term("bucket", (("id",),), (16,))),
    "ADD PARTITION FIELD truncate(4, data)": AddPartitionField(
        Term("truncate", (("data",),), (4,))
    ),
    "ADD PARTITION FIELD year(ts)": AddPartitionField(Term("year", (("ts",),))),
    "ADD PARTITION FIELD bucket(16, id) AS shard": AddPartitionField(
        Term("bucket", (("id",),), (16,)), "shard"
    ),
    "DROP PARTITION FIELD catalog": DropPartitionField(Term("identity", (("catalog",),))),
    "DROP PARTITION FIELD days(ts)": DropPartitionField(Term("days", (("ts",),))),
    "REPLACE PARTITION FIELD ts_day WITH day(ts)": ReplacePartitionField(
        Term("identity", (("ts_day",),)), Term("day", (("ts",),))
    ),
    "REPLACE PARTITION FIELD ts_day WITH day(ts) AS day_of_ts": ReplacePartitionField(
        Term("identity", (("ts_day",),)), Term("day", (("ts",),)), "day_of_ts"
    ),
    "WRITE ORDERED BY category, id": SetWriteOrder(
        "range",
        (
            WriteOrderKey(Term("identity", (("category",),)), descending=False, nulls_first=True),
            WriteOrderKey(ID, descending=False, nulls_first=True),
        ),
    ),
    "WRITE ORDERED BY category ASC NULLS LAST, id DESC NULLS FIRST": SetWriteOrder(
        "range",
        (
            WriteOrderKey(Term("identity", (("category",),)), descending=False, nulls_first=False),
            WriteOrderKey(ID, descending=True, nulls_first=True),
        ),
    ),
    "WRITE LOCALLY ORDERED BY id desc": SetWriteOrder(
        None, (WriteOrderKey(ID, descending=True, nulls_first=False),)
    ),
    "WRITE ORDERED BY (id)": SetWriteOrder(
        "range", (WriteOrderKey(ID, descending=False, nulls_first=True),)
    ),
    "WRITE UNORDERED": SetWriteOrder("none"),
    "WRITE DISTRIBUTED BY PARTITION": SetWriteOrder("hash"),
    "WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id": SetWriteOrder(
        "hash", (WriteOrderKey(ID, descending=False, nulls_first=True),)
    ),
    "WRITE ORDERED BY id DISTRIBUTED BY PARTITION": SetWriteOrder(
        "hash", (WriteOrderKey(ID, descending=False, nulls_first=True),)
    ),
    "SET IDENTIFIER FIELDS id, data": SetIdentifierFields((("id",), ("data",))),
    "DROP IDENTIFIER FIELDS a.b": DropIdentifierFields((("a", "b"),)),
    "CREATE BRANCH `audit-branch`": MakeRef("branch", "audit-branch", create=True, replace=False),
    "CREATE BRANCH IF NOT EXISTS b": MakeRef(
        "branch", "b", create=True, replace=False, if_not_exists=True
    ),
    "CREATE OR REPLACE BRANCH b": MakeRef("branch", "b", create=True, replace=True),
    "CREATE BRANCH b AS OF VERSION 1234 RETAIN 30 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS": (
        MakeRef("branch", "b", True, False, False, 1234, 30 * DAY, 3, 2 * DAY)
    ),
    "REPLACE BRANCH b AS OF VERSION 4567 RETAIN 60 MINUTES": MakeRef(
        "branch", "b", False, True, False, 4567, 3_600_000
    ),
    "CREATE BRANCH b WITH SNAPSHOT RETENTION 5 HOURS": MakeRef(
        "branch", "b", True, False, max_snapshot_age_ms=18_000_000
    ),
    "CREATE BRANCH b WITH SNAPSHOT RETENTION 7 SNAPSHOTS": MakeRef(
        "branch", "b", True, False, min_snapshots_to_keep=7
    ),
    "CREATE TAG t AS OF VERSION 1 RETAIN 365 DAYS": MakeRef(
        "tag", "t", True, False, False, 1, 365 * DAY
    ),
    "DROP BRANCH IF EXISTS b": DropRef("branch", "b", if_exists=True),
    "DROP TAG t": DropRef("tag", "t"),
}


@pytest.mark.parametrize("text", DOCUMENTED)
def test_a_documented_statement_is_read(text):
    assert parse_statement(text) == DOCUMENTED[text]


@pytest.mark.parametrize(
    ("text", "wanted", "at"),
    [
        ("ADD PARTITION FIELD", "a name", "the end"),
        ("ADD PARTITION FIELD bucket(16 id)", ")", "'id'"),
        ("ADD PARTITION FIELD bucket(16, id) shard", "the end of the statement", "'shard'"),
        ("REPLACE PARTITION FIELD a days(b)", "WITH", "'days'"),
        ("ADD PARTITION FIELD bucket(, id)", "a column or a number", "','"),
        ("WRITE", "DISTRIBUTED BY PARTITION", "the end"),
        ("WRITE DISTRIBUTED BY id", "DISTRIBUTED BY PARTITION", "'DISTRIBUTED'"),
        ("WRITE ORDERED BY id NULLS", "LAST", "the end"),
        ("CREATE BRANCH b RETAIN 3", "DAYS, HOURS or MINUTES", "the end"),
        ("CREATE BRANCH b AS OF VERSION 'x'", "a number", "'x'"),
        ("CREATE BRANCH 123", "a name", "'123'"),
        ("CREATE OR REPLACE BRANCH IF NOT EXISTS b", "the end of the statement", "'NOT'"),
        ("CREATE TAG t WITH SNAPSHOT RETENTION 3 SNAPSHOTS", "the end", "'WITH'"),
        ("CREATE TABLE t", "BRANCH or TAG", "'TABLE'"),
        ("RENAME BRANCH a TO b", "a change", "'RENAME'"),
        ("", "a change", "the end"),
    ],
)
def test_what_cannot_be_read_says_what_should_stand_where_and_how_to_write_it(text, wanted, at):
    with pytest.raises(
        ValidationError, match=f"{re.escape(wanted)}.* where {re.escape(at)} is"
    ) as e:
        parse_statement(text)
    assert e.value.hint is not None
    assert e.value.hint.startswith("Write ")


@pytest.mark.parametrize(
    "text",
    [
        "WRITE DISTRIBUTED BY PARTITION DISTRIBUTED BY PARTITION",
        "WRITE UNORDERED ORDERED BY id",
        "WRITE ORDERED BY id LOCALLY ORDERED BY id",
    ],
)
def test_a_clause_is_given_once(text):
    with pytest.raises(ValidationError, match="twice"):
        parse_statement(text)


def test_an_empty_name_is_refused():
    with pytest.raises(ValidationError, match="empty"):
        parse_statement("CREATE TAG ``")


# Statements at random, written at random.
KEYWORDS = ["by", "asc", "nulls", "as", "with", "write", "days", "field", "replace", "Tag", "first"]
NAMES = st.one_of(st.sampled_from(KEYWORDS), st.text(min_size=1, max_size=5))
COLUMNS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
CONSTANTS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.text(max_size=4))
# a word before a bracket is a transform, also one that is called identity
TRANSFORMS = NAMES.filter(lambda name: name != "identity")
TERMS = st.one_of(
    st.builds(Term, st.just("identity"), COLUMNS.map(lambda column: (column,))),
    st.builds(
        Term,
        TRANSFORMS,
        st.lists(COLUMNS, min_size=1, max_size=2).map(tuple),
        st.lists(CONSTANTS, max_size=2).map(tuple),
    ),
)
ORDERS = st.lists(
    st.builds(WriteOrderKey, TERMS, st.booleans(), st.booleans()), min_size=1, max_size=3
)
KEPT = st.none() | st.integers(1, 2**31 - 1)
AGES = st.none() | st.integers(1, 10_000).map(lambda minutes: minutes * 60_000)
KINDS = st.sampled_from(
    [(True, False, False), (True, False, True), (True, True, False), (False, True, False)]
)
REFS = st.builds(
    lambda kind, name, how, version, age, kept, oldest: MakeRef(
        kind, name, *how, version, age, *((kept, oldest) if kind == "branch" else ())
    ),
    st.sampled_from(["branch", "tag"]),
    NAMES,
    KINDS,
    st.none() | st.integers(0, 2**63 - 1),
    AGES,
    KEPT,
    AGES,
)
STATEMENTS = st.one_of(
    st.builds(AddPartitionField, TERMS, st.none() | NAMES),
    st.builds(DropPartitionField, TERMS),
    st.builds(ReplacePartitionField, TERMS, TERMS, st.none() | NAMES),
    st.builds(SetWriteOrder, st.sampled_from([None, "range", "hash"]), ORDERS.map(tuple)),
    st.sampled_from([SetWriteOrder("none"), SetWriteOrder("hash")]),
    st.builds(SetIdentifierFields, st.lists(COLUMNS, min_size=1, max_size=3).map(tuple)),
    st.builds(DropIdentifierFields, st.lists(COLUMNS, min_size=1, max_size=3).map(tuple)),
    REFS,
    st.builds(DropRef, st.sampled_from(["branch", "tag"]), NAMES, st.booleans()),
)
GAPS = st.sampled_from([" ", "\n", "\t ", " /* a ' ` */ ", " -- b ` '\n", "/**/ "])


class Writer:
    """Writes a statement: keywords in any case, gaps and comments between any two words."""

    def __init__(self, draw):
        self._draw = draw
        self._words = []

    def words(self, text):
        for word in text.split():
            self._words.append(self._draw(st.sampled_from([word, word.lower(), word.title()])))

    def sign(self, text):
        self._words.append(text)

    def name(self, name):
        plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None
        quoted = f"`{name.replace('`', '``')}`"
        self._words.append(name if plain and self._draw(st.booleans()) else quoted)

    def listed(self, elements, write):
        for position, element in enumerate(elements):
            if position:
                self.sign(",")
            write(element)

    def column(self, column):
        for position, part in enumerate(column):
            if position:
                self.sign(".")
            self.name(part)

    def constant(self, value):
        escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
        self.sign(str(value) if isinstance(value, int) else f"'{escaped}'")

    def term(self, term):
        if term.transform == "identity":
            self.column(term.columns[0])
            return
        self.name(term.transform)
        self.sign("(")
        arguments = [(self.column, c) for c in term.columns]
        arguments += [(self.constant, c) for c in term.constants]
        self.listed(arguments, lambda argument: argument[0](argument[1]))
        self.sign(")")

    def key(self, key):
        self.term(key.term)
        if key.descending:
            self.words("DESC")
        elif self._draw(st.booleans()):
            self.words("ASC")
        if key.nulls_first == key.descending or self._draw(st.booleans()):
            self.words("NULLS FIRST" if key.nulls_first else "NULLS LAST")

    def alias(self, name):
        if name is not None:
            self.words("AS")
            self.name(name)

    def duration(self, milliseconds):
        minutes = milliseconds // 60_000
        units = [("MINUTES", 1), ("HOURS", 60), ("DAYS", 1440)]
        fitting = [(u, minutes // n) for u, n in units if minutes % n == 0]
        unit, count = self._draw(st.sampled_from(fitting))
        self.sign(str(count))
        self.words(unit)

    def statement(self, said):
        match said:
            case AddPartitionField():
                self.words("ADD PARTITION FIELD")
                self.term(said.term)
                self.alias(said.name)
            case DropPartitionField():
                self.words("DROP PARTITION FIELD")
                self.term(said.term)
            case ReplacePartitionField():
                self.words("REPLACE PARTITION FIELD")
                self.term(said.term)
                self.words("WITH")
                self.term(said.replacement)
                self.alias(said.name)
            case SetWriteOrder():
                self.order(said)
            case SetIdentifierFields():
                self.words("SET IDENTIFIER FIELDS")
                self.listed(said.columns, self.column)
            case DropIdentifierFields():
                self.words("DROP IDENTIFIER FIELDS")
                self.listed(said.columns, self.column)
            case MakeRef():
                self.ref(said)
            case DropRef():
                self.words(f"DROP {said.kind}" + (" IF EXISTS" if said.if_exists else ""))
                self.name(said.name)
        return "".join(word + self._draw(GAPS) for word in self._words)

    def order(self, said):
        self.words("WRITE")
        hashed = said.distribution == "hash"
        before = self._draw(st.booleans())
        if hashed and before:
            self.words("DISTRIBUTED BY PARTITION")
        if said.order:
            local = said.distribution is None or (hashed and self._draw(st.booleans()))
            self.words("LOCALLY ORDERED BY" if local else "ORDERED BY")
            brackets = self._draw(st.booleans())
            if brackets:
                self.sign("(")
            self.listed(said.order, self.key)
            if brackets:
                self.sign(")")
        elif not hashed:
            self.words("UNORDERED")
        if hashed and not before:
            self.words("DISTRIBUTED BY PARTITION")

    def ref(self, said):
        verbs = [
            verb
            for verb, is_said in (("CREATE", said.create), ("REPLACE", said.replace))
            if is_said
        ]
        self.words(" OR ".join(verbs) + f" {said.kind}")
        if said.if_not_exists:
            self.words("IF NOT EXISTS")
        self.name(said.name)
        if said.snapshot_id is not None:
            self.words("AS OF VERSION")
            self.sign(str(said.snapshot_id))
        if said.max_ref_age_ms is not None:
            self.words("RETAIN")
            self.duration(said.max_ref_age_ms)
        if said.min_snapshots_to_keep is not None or said.max_snapshot_age_ms is not None:
            self.words("WITH SNAPSHOT RETENTION")
        if said.min_snapshots_to_keep is not None:
            self.sign(str(said.min_snapshots_to_keep))
            self.words("SNAPSHOTS")
        if said.max_snapshot_age_ms is not None:
            self.duration(said.max_snapshot_age_ms)


@given(STATEMENTS, st.data())
def test_any_statement_is_read_as_it_was_written(said, data):
    assert parse_statement(Writer(data.draw).statement(said)) == said


@given(st.text())
def test_no_text_is_misread_in_silence_or_breaks_the_parser(text):
    try:
        parse_statement(text)
    except ValidationError as error:
        assert error.hint  # noqa: PT017 - most texts are refused, and each says why
