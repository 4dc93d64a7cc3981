"""Changes of Paimon schemas, by the rules of Paimon's SchemaManager and DataTypeCasts."""

import json
import threading

import pytest

from icecomb.catalog.paimon.difference import differences
from icecomb.catalog.paimon.schema_change import (
    AddColumn,
    DropColumn,
    MoveColumn,
    Position,
    RemoveOption,
    RenameColumn,
    SetOption,
    UpdateComment,
    UpdateDefault,
    UpdateDescription,
    UpdateNullability,
    UpdateType,
)
from icecomb.catalog.paimon.source import SchemaFiles
from icecomb.catalog.paimon.type_parser import parse_type
from icecomb.format.errors import SchemaError
from icecomb.format.storage.file_io import FileIO

SPOT = {
    "type": "ROW",
    "fields": [{"id": 5, "name": "x", "type": "INT"}, {"id": 6, "name": "y", "type": "INT"}],
}
FIRST_SCHEMA = {
    "version": 2,
    "id": 0,
    "fields": [
        {"id": 0, "name": "k", "type": "BIGINT NOT NULL"},
        {"id": 1, "name": "day", "type": "DATE NOT NULL"},
        {"id": 2, "name": "name", "type": "STRING"},
        {"id": 3, "name": "price", "type": "DECIMAL(10, 2)"},
        {"id": 4, "name": "spots", "type": {"type": "ARRAY", "element": SPOT}},
    ],
    "highestFieldId": 8,
    "partitionKeys": ["day"],
    "primaryKeys": ["k", "day"],
    "options": {"bucket": "4", "sequence.field": "name", "fields.price.aggregate-function": "sum"},
    "timeMillis": 1720496663041,
    "future": True,
}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "schema").mkdir()
    (tmp_path / "schema" / "schema-0").write_text(json.dumps(FIRST_SCHEMA))
    return SchemaFiles(FileIO(), str(tmp_path))


def shown(schema):
    return [f"{f.field_id} {f}" for f in schema.fields]


def test_every_change_makes_the_next_schema_file_and_leaves_the_old_ones(files, tmp_path):
    before = (tmp_path / "schema" / "schema-0").read_bytes()
    new = files.evolve(
        [
            AddColumn(
                ("box",), parse_type("ROW<w INT, inner ROW<z INT>>"), "a box", Position("FIRST")
            ),
            AddColumn(
                ("spots", "element", "z"), parse_type("BIGINT"), None, Position("AFTER", "x")
            ),
            DropColumn(("spots", "element", "y")),
            RenameColumn(("name",), "title"),
            RenameColumn(("spots", "element", "x"), "east"),
            MoveColumn(("price",), Position("BEFORE", "title")),
            UpdateType(("price",), parse_type("DOUBLE")),
            UpdateType(("spots", "element", "east"), parse_type("BIGINT")),
            UpdateDescription(("k",), "the key"),
            UpdateNullability(("day",), nullable=False),
            SetOption("snapshot.num-retained.min", "3"),
            UpdateComment("orders"),
        ]
    )
    assert (new.schema_id, new.version, new.highest_field_id, new.extra) == (
        1,
        3,
        13,
        {"future": True},
    )
    assert shown(new) == [
        "9 box ROW<w INT, inner ROW<z INT>> COMMENT 'a box'",
        "0 k BIGINT NOT NULL COMMENT 'the key'",
        "1 day DATE NOT NULL",
        "3 price DOUBLE",
        "2 title STRING",
        "4 spots ARRAY<ROW<east BIGINT, z BIGINT>>",
    ]
    assert [f.field_id for f in new.all_fields()] == [9, 10, 12, 11, 0, 1, 3, 2, 4, 5, 13]
    assert new.options == {
        "bucket": "4",
        "sequence.field": "title",
        "fields.price.aggregate-function": "sum",
        "file.format": "orc",
        "snapshot.num-retained.min": "3",
    }
    assert files.latest().to_json() == new.to_json()
    assert (tmp_path / "schema" / "schema-0").read_bytes() == before


def test_a_renamed_key_is_the_same_key(files):
    new = files.evolve([RenameColumn(("k",), "id")])
    assert new.primary_keys == ("id", "day")
    assert [d.kind for d in differences(files.read(0), new)] == ["renamed"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (DropColumn(("day",)), "Cannot drop day: it is a partition key"),
        (DropColumn(("k",)), "Cannot drop k: it is a primary key"),
        (DropColumn(("name",)), "option sequence.field names it"),
        (RenameColumn(("day",), "d"), "Cannot rename day: it is a partition key"),
        (RenameColumn(("name",), "k"), "there is a column k already"),
        (UpdateType(("k",), parse_type("STRING")), "change the type of k: it is a primary key"),
        (UpdateType(("name",), parse_type("ARRAY<STRING>")), "from STRING to ARRAY<STRING>"),
        (UpdateType(("spots",), parse_type("INT")), "Cannot change the type of spots"),
        (UpdateNullability(("k",), nullable=True), "make nullable k: it is a primary key"),
        (UpdateNullability(("name",), nullable=False), "Cannot make name NOT NULL"),
        (AddColumn(("n",), parse_type("INT NOT NULL")), "a new column must be nullable"),
        (AddColumn(("name",), parse_type("INT")), "there is such a column already"),
        (
            AddColumn(("n",), parse_type("INT"), None, Position("AFTER", "gone")),
            "There is no column gone",
        ),
        (AddColumn(("spots", "x2"), parse_type("INT")), "has no field x2"),
        (
            DropColumn(("spots", "element", "gone")),
            "There is no column spots.element.gone",
        ),
        (MoveColumn(("k",), Position("AFTER", "k")), "beside itself"),
        (AddColumn(("n",), parse_type("BYTES"), "__BLOB_FIELD"), "Paimon takes for a command"),
        (UpdateDescription(("name",), "__VECTOR_FIELD;3"), "Paimon takes for a command"),
        (AddColumn(("_ROW_ID",), parse_type("INT")), "_ROW_ID is one of Paimon's own columns"),
        (RenameColumn(("name",), "_KEY_a"), "_KEY_a is one of Paimon's own columns"),
        (UpdateDefault(("price",), "cheap"), "'cheap' is not a default value for price"),
        (UpdateDefault(("spots",), "[]"), "not a default value for spots"),
        (SetOption("rowkind.field", "kind"), "names the column kind, which does not exist"),
        (SetOption("bucket-key", "name"), "names name, which is not in the primary key"),
        (SetOption("bucket", "many"), "not a number of buckets"),
        (SetOption("path", "/elsewhere"), "Option path cannot change"),
        (SetOption("partition", "k"), "Option partition cannot change"),
        (SetOption("primary-key", "k"), "Option primary-key cannot change"),
        (SetOption("bucket", "4"), "change nothing"),
    ],
)
def test_a_change_that_paimon_refuses_writes_nothing(files, tmp_path, change, said):
    with pytest.raises(SchemaError, match=said):
        files.evolve(
            [SetOption("write-only", "true"), change] if "nothing" not in said else [change]
        )
    assert [p.name for p in (tmp_path / "schema").iterdir()] == ["schema-0"]


@pytest.mark.parametrize(
    "change",
    [
        SetOption("merge-engine", "aggregation"),
        SetOption("bucket-key", "k"),
        SetOption("bucket", "-1"),
        RemoveOption("bucket"),
        SetOption("deletion-vectors.enabled", "true"),
    ],
)
def test_options_that_data_depend_on_are_fixed_once_there_are_data(files, tmp_path, change):
    files.evolve([SetOption("write-only", "true"), change])
    (tmp_path / "schema" / "schema-1").unlink()
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot" / "snapshot-1").write_text("{}")
    with pytest.raises(SchemaError, match="cannot change"):
        files.evolve([change])


def test_nulls_are_refused_once_an_option_allows_that(files):
    allow = SetOption("alter-column-null-to-not-null.disabled", "false")
    new = files.evolve([allow, UpdateNullability(("name",), nullable=False)])
    assert str(new.fields[2].field_type) == "STRING NOT NULL"


def test_explicit_casts_can_be_switched_off(files):
    off = SetOption("disable-explicit-type-casting", "true")
    with pytest.raises(SchemaError, match="does not cast"):
        files.evolve([off, UpdateType(("name",), parse_type("INT"))])


def test_of_many_writers_each_change_lands_once(files):
    def add(number):
        files.evolve([AddColumn((f"c{number}",), parse_type("INT"))])

    threads = [threading.Thread(target=add, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(files.ids()) == list(range(9))
    latest = files.latest()
    assert sorted(f.name for f in latest.fields[5:]) == [f"c{n}" for n in range(8)]
    assert sorted(f.field_id for f in latest.fields[5:]) == list(range(9, 17))


def test_a_default_value_stays_a_value_of_its_column(files):
    with pytest.raises(SchemaError, match="'five' is not a default value for name, which is INT"):
        files.evolve([UpdateDefault(("name",), "'five'"), UpdateType(("name",), parse_type("INT"))])
    new = files.evolve(
        [UpdateDefault(("name",), "'5'"), UpdateType(("name",), parse_type("TINYINT"))]
    )
    assert new.fields[2].default_value == "'5'"
    with pytest.raises(
        SchemaError, match="'500' is not a default value for name, which is TINYINT"
    ):
        files.evolve([UpdateDefault(("name",), "500")])
    assert files.evolve([UpdateDefault(("name",), None)]).fields[2].default_value is None


def test_a_blob_keeps_its_name(files):
    files.evolve([AddColumn(("picture",), parse_type("BLOB"))])
    with pytest.raises(SchemaError, match="Cannot rename picture: it is a BLOB"):
        files.evolve([RenameColumn(("picture",), "image")])


class Outrun(FileIO):
    """A storage on which another writer makes the same file just before us, once."""

    theirs = None

    def create(self, location, data):
        theirs, self.theirs = self.theirs, None
        if theirs is not None:
            theirs()
        super().create(location, data)


def test_a_lost_race_is_won_on_top_of_the_winner(files):
    io = Outrun()
    io.theirs = lambda: files.evolve([RenameColumn(("name",), "title")])
    new = SchemaFiles(io, files.location).evolve([AddColumn(("n",), parse_type("INT"))])
    assert new.schema_id == 2
    assert [f.name for f in new.fields] == ["k", "day", "title", "price", "spots", "n"]


def test_a_lost_race_whose_winner_made_the_change_impossible_writes_nothing(files):
    io = Outrun()
    io.theirs = lambda: files.evolve(
        [RemoveOption("fields.price.aggregate-function"), DropColumn(("price",))]
    )
    with pytest.raises(SchemaError, match="There is no column price"):
        SchemaFiles(io, files.location).evolve([UpdateType(("price",), parse_type("DOUBLE"))])
    assert list(files.ids()) == [0, 1]


def test_differences_are_found_by_id_at_all_depths(files):
    new = files.evolve(
        [
            RenameColumn(("spots", "element", "x"), "east"),
            UpdateType(("spots", "element", "y"), parse_type("STRING")),
            AddColumn(("spots", "element", "z"), parse_type("INT")),
            RenameColumn(("price",), "cost"),
            MoveColumn(("cost",), Position("FIRST")),
            DropColumn(("spots", "element", "y")),
            AddColumn(("spots", "element", "y"), parse_type("STRING")),
            UpdateNullability(("spots", "element"), nullable=True),
            RemoveOption("fields.cost.aggregate-function"),
            UpdateComment("c"),
        ]
    )
    assert [
        (d.kind, d.path, d.before, d.after, d.field_id) for d in differences(files.read(0), new)
    ] == [
        ("dropped", "spots.element.y", "INT", None, 6),
        ("renamed", "cost", "price", "cost", 3),
        ("moved", "cost", "after name", "first", 3),
        ("renamed", "spots.element.east", "x", "east", 5),
        ("added", "spots.element.z", None, "INT", 9),
        ("added", "spots.element.y", None, "STRING", 10),
        ("option", "fields.price.aggregate-function", "sum", None, None),
        ("comment", "", None, "c", None),
    ]
    assert differences(new, new) == []
