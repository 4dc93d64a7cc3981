"""Members that a later version of Iceberg may add to any object of a metadata file stay there."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import SchemaError, ValidationError
from icecomb.format.spec.change.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    update_table_metadata,
)
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.values.json_object import optional, required

OPEN = ("properties", "summary", "refs")
FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {
        "id": 2,
        "name": "place",
        "required": False,
        "type": {
            "type": "struct",
            "fields": [{"id": 3, "name": "city", "required": False, "type": "string"}],
        },
    },
    {
        "id": 4,
        "name": "tags",
        "required": False,
        "type": {
            "type": "list",
            "element-id": 5,
            "element": {
                "type": "struct",
                "fields": [{"id": 6, "name": "tag", "required": False, "type": "int"}],
            },
            "element-required": False,
        },
    },
    {
        "id": 7,
        "name": "counts",
        "required": False,
        "type": {
            "type": "map",
            "key-id": 8,
            "key": "string",
            "value-id": 9,
            "value": "int",
            "value-required": False,
        },
    },
]


def document(location, version):
    """A table with history by hand; its snapshot has no file."""
    schema = {"type": "struct", "schema-id": 0, "fields": FIELDS}
    spec = [{"name": "b", "transform": "bucket[4]", "source-id": 1, "field-id": 1000}]
    order = {
        "transform": "identity",
        "source-id": 1,
        "direction": "asc",
        "null-order": "nulls-first",
    }
    found = {
        "format-version": version,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": location,
        "last-updated-ms": 1602638573590,
        "last-column-id": 9,
        "current-schema-id": 0,
        "schemas": [schema],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": spec}],
        "last-partition-id": 1000,
        "default-sort-order-id": 1,
        "sort-orders": [{"order-id": 1, "fields": [order]}],
        "properties": {"owner": "me"},
        "current-snapshot-id": 7,
        "refs": {
            "main": {"snapshot-id": 7, "type": "branch"},
            "v1": {"snapshot-id": 7, "type": "tag", "max-ref-age-ms": 9000000000000},
        },
        "snapshots": [
            {
                "snapshot-id": 7,
                "timestamp-ms": 1602638573590,
                "summary": {"operation": "append"},
                "manifests": [],
                "schema-id": 0,
            }
        ],
        "statistics": [
            {
                "snapshot-id": 7,
                "statistics-path": "/s",
                "file-size-in-bytes": 1,
                "file-footer-size-in-bytes": 1,
                "blob-metadata": [
                    {"type": "t", "snapshot-id": 7, "sequence-number": 0, "fields": [1]}
                ],
            }
        ],
        "partition-statistics": [
            {"snapshot-id": 7, "statistics-path": "/p", "file-size-in-bytes": 1}
        ],
        "snapshot-log": [{"timestamp-ms": 1602638573590, "snapshot-id": 7}],
        "metadata-log": [{"timestamp-ms": 1602638573589, "metadata-file": "/old.json"}],
    }
    if version == 1:
        return {**found, "schema": schema, "partition-spec": spec}
    return {**found, "last-sequence-number": 0}


def marked(value, path="$", *, is_open=False):
    """The same JSON with a member of its own in every object that the specification closes."""
    if isinstance(value, list):
        return [marked(item, f"{path}[{n}]") for n, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    inner = {k: marked(v, f"{path}.{k}", is_open=k in OPEN) for k, v in value.items()}
    return inner if is_open else {**inner, "later": {"at": path}}


def marks(value):
    """Where the marks were put that are still there."""
    if isinstance(value, list):
        return {mark for item in value for mark in marks(item)}
    if not isinstance(value, dict):
        return set()
    own = {value["later"]["at"]} if "later" in value else set()
    return own.union(*(marks(item) for key, item in value.items() if key != "later"))


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def table(request, tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    folder = Path(tmp_path, "db", "t")
    Path(folder, "metadata").mkdir(parents=True)
    content = marked(document(str(folder), request.param))
    Path(folder, "metadata", "v1.metadata.json").write_text(json.dumps(content))
    return catalog.load_table("db.t")


def written(table):
    """The newest metadata file."""
    return json.loads(Path(table.metadata_location).read_text())


def before(table):
    return marked(document(table.location(), table.metadata.format_version))


def test_unknown_members_of_every_object_survive_an_append(table):
    expected = before(table)
    table.append(pa.table({"id": pa.array([1, 2], pa.int64())}))
    after = written(table)
    # version 1 repeats the current schema and spec for its oldest readers
    repeated = [expected.pop(name) for name in ("schema", "partition-spec") if name in expected]
    assert marks(after) == marks(expected)
    if repeated:
        assert after["schema"] == after["schemas"][0]
        assert after["partition-spec"] == after["partition-specs"][0]["fields"]
    assert len(after["snapshots"]) == 2
    assert after["refs"]["main"]["snapshot-id"] == table.metadata.current_snapshot_id
    assert after["refs"]["main"]["later"] == {"at": "$.refs.main"}
    for name in ("schemas", "partition-specs", "sort-orders", "statistics", "partition-statistics"):
        assert after[name] == expected[name]
    assert [after["snapshots"][0], after["snapshot-log"][0], after["metadata-log"][0]] == [
        expected["snapshots"][0],
        expected["snapshot-log"][0],
        expected["metadata-log"][0],
    ]


def test_evolution_keeps_the_unknown_members_of_what_it_leaves(table):
    with table.update_schema() as update:
        update.add_column("note", "string")
        update.add_column(("place", "zip"), "string")
        update.rename_column("tags.element.tag", "label")
    with table.update_spec() as update:
        update.add_field("id", "truncate[10]")
    after = written(table)
    old, new = after["schemas"]
    assert old == before(table)["schemas"][0]
    inside = {f"$.schemas[0].{rest}" for rest in ("", *_inside_schema())} - {"$.schemas[0]."}
    assert marks(new) == inside
    added = [f for f in new["fields"] if f["name"] == "note"]
    assert "later" not in added[0]
    assert marks(after["partition-specs"][1]) == {"$.partition-specs[0].fields[0]"}


def _inside_schema():
    return (
        "fields[0]",
        "fields[1]",
        "fields[1].type",
        "fields[1].type.fields[0]",
        "fields[2]",
        "fields[2].type",
        "fields[2].type.element",
        "fields[2].type.element.fields[0]",
        "fields[3]",
        "fields[3].type",
    )


@pytest.mark.parametrize("version", [1, 2])
def test_unknown_members_do_not_make_another_schema_or_spec(version):
    plain = TableMetadata.from_json(json.dumps(document("/t", version)))
    rich = TableMetadata.from_json(json.dumps(marked(document("/t", version))))
    assert rich.schema() == plain.schema()
    assert rich.spec() == plain.spec()
    assert rich.sort_order() == plain.sort_order()
    assert hash(rich.schema()) == hash(plain.schema())
    same = update_table_metadata(
        rich, (AddSchemaUpdate(plain.schema()), AddPartitionSpecUpdate(plain.spec()))
    )
    assert same is rich


OBJECT = {"name": "x", "number": 1, "null": None}


@pytest.mark.parametrize(
    ("raw", "key", "kind", "message"),
    [
        ([], "name", str, "Invalid thing: not an object with 'name': []"),
        (OBJECT, "other", str, "Invalid thing: 'other' is missing"),
        (OBJECT, "null", str, "Invalid thing: 'null' is missing"),
        (OBJECT, "name", int, "Invalid thing: 'name' is 'x', not of type int"),
        ({"number": True}, "number", int, "Invalid thing: 'number' is True, not of type int"),
    ],
)
def test_a_member_that_an_object_lacks_is_named(raw, key, kind, message):
    with pytest.raises(SchemaError) as refused:
        required(raw, key, kind, "thing", SchemaError)
    assert refused.value.message == message
    assert refused.value.hint


def test_members_are_given_and_optional_ones_may_be_null():
    assert required(OBJECT, "number", int) == 1
    assert (optional(OBJECT, "name", str), optional(OBJECT, "null", str)) == ("x", None)
    with pytest.raises(ValidationError, match="'name' is 'x', not of type int"):
        optional(OBJECT, "name", int)
