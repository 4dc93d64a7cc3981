"""Evolution of schemas, compared with PyIceberg's where both can do the same."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pyiceberg.types
import pytest
from hypothesis import given, settings, strategies as st
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataUtil

import icecomb.format.spec.types as own
from icecomb.format.errors import (
    CommitFailedError,
    SchemaError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.evolution.schema_update import UpdateSchema
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.name_mapping import NameMapping, create_name_mapping
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema, walk
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER, SortField, SortOrder
from icecomb.format.spec.transform import BucketTransform, UnknownTransform
from icecomb.format.spec.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)
from tests.format.commit import commit

UNPARTITIONED = PartitionSpec()
POINT = StructType((NestedField(11, "x", FloatType(), True), NestedField(12, "y", FloatType())))
SCHEMA = Schema(
    (
        NestedField(1, "id", IntegerType(), True, "the key"),
        NestedField(2, "Name", StringType()),
        NestedField(3, "price", DecimalType(9, 2)),
        NestedField(4, "place", POINT),
        NestedField(5, "points", ListType(20, StructType((NestedField(21, "z", IntegerType()),)))),
        NestedField(
            6,
            "by_day",
            MapType(30, StringType(), 31, StructType((NestedField(32, "n", IntegerType(), True),))),
        ),
        NestedField(7, "tags", ListType(40, FloatType(), True)),
    ),
    0,
    (1,),
)


def table(schema=SCHEMA, spec=UNPARTITIONED, order=UNSORTED_SORT_ORDER, **properties):
    return new_table_metadata(schema, spec, order, "/t", properties)


def evolved(base, change, **options):
    update = UpdateSchema(base, **options)
    change(update)
    return commit(base, update)


def peer_transaction(base):
    peer = TableMetadataUtil.parse_raw(base.to_json())
    return Table(("db", "t"), peer, "/t/m.json", PyArrowFileIO(), NoopCatalog("peer")).transaction()


def as_peer(field_type):
    raw = {"type": "struct", "fields": [NestedField(1, "f", field_type).to_json()]}
    schema = pyiceberg.schema.Schema.model_validate(raw)
    return schema.fields[0].field_type


class Both:
    """Makes the same calls on our update and on PyIceberg's."""

    def __init__(self, *updates):
        self.updates = updates

    def __getattr__(self, name):
        def call(*args, **kwargs):
            ours, theirs = self.updates
            getattr(ours, name)(*args, **kwargs)
            getattr(theirs, name)(*map(converted, args), **kwargs)
            return self

        return call


def converted(value):
    if isinstance(value, own.IcebergType):
        return as_peer(value)
    return (
        pyiceberg.schema.Schema.model_validate(value.to_json())
        if isinstance(value, Schema)
        else value
    )


def assert_like_pyiceberg(base, change, **options):
    transaction = peer_transaction(base)
    ours, theirs = UpdateSchema(base, **options), transaction.update_schema(**options)
    change(Both(ours, theirs))
    theirs.commit()
    metadata = commit(base, ours)
    expected = json.loads(transaction.table_metadata.schema().model_dump_json())
    identifiers = expected.pop("identifier-field-ids", [])
    found = metadata.schema().to_json()
    assert set(found.pop("identifier-field-ids", [])) == set(identifiers)
    assert found == expected
    assert metadata.last_column_id == transaction.table_metadata.last_column_id
    mapping = metadata.name_mapping()
    if mapping is not None:
        peers = transaction.table_metadata.name_mapping().model_dump_json()
        before, ours = owners(base.name_mapping().fields), owners(mapping.fields)
        if before.items() <= owners(NameMapping.from_json(peers).fields).items():
            assert json.loads(mapping.to_json()) == json.loads(peers)
        # PyIceberg gives names of old columns to new ones, which files without ids then fill
        assert before.items() <= ours.items()
    return metadata


def owners(fields, path=()):
    """The ids that names stand for, by the ids around them and the name."""
    found = {}
    for f in fields:
        found |= {(path, name): f.field_id for name in f.names}
        found |= owners(f.fields, (*path, f.field_id))
    return found


NESTED = StructType(
    (
        NestedField(1, "a", ListType(2, StructType((NestedField(3, "b", LongType()),)))),
        NestedField(4, "c", MapType(5, StringType(), 6, DoubleType())),
    )
)


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize(
    "change",
    [
        lambda u: u.add_column("city", StringType(), "where"),
        lambda u: u.add_column("a", LongType()).add_column("b", NESTED).add_column("c", LongType()),
        lambda u: u.add_column(("place", "z"), FloatType()),
        lambda u: u.add_column(("points", "w"), FloatType()),
        lambda u: u.add_column(("by_day", "m"), NESTED),
        lambda u: u.add_column(("dotted.name",), StringType()),
        lambda u: u.delete_column("Name"),
        lambda u: u.delete_column("place"),
        lambda u: u.delete_column(("place", "y")),
        lambda u: u.delete_column("points.z").add_column(("points", "z"), StringType()),
        lambda u: u.delete_column("Name").add_column("Name", LongType()),
        lambda u: u.rename_column("id", "key").rename_column("place.x", "east"),
        lambda u: u.rename_column("points", "shape").rename_column("points.z", "up"),
        lambda u: u.update_column("id", LongType()),
        lambda u: u.update_column("id", LongType(), doc="wider").rename_column("id", "key"),
        lambda u: u.update_column("price", DecimalType(20, 2)),
        lambda u: u.update_column("place.x", DoubleType(), required=False),
        lambda u: u.update_column("tags.element", DoubleType()),
        lambda u: u.update_column("by_day.n", LongType()),
        lambda u: u.make_column_optional("place.x").make_column_optional("tags.element"),
        lambda u: u.make_column_optional("by_day.n"),
        lambda u: u.move_first("price").move_after("id", "place").move_before("tags", "Name"),
        lambda u: u.move_first("place.y").add_column(("place", "z"), FloatType()),
        lambda u: u.add_column("new", LongType()).move_first("new"),
        lambda u: (
            u.add_column("n1", LongType()).add_column("n2", LongType()).move_before("n2", "n1")
        ),
        lambda u: u.add_column(("place", "z"), FloatType()).move_before("place.z", "place.x"),
        lambda u: u.update_column("Name", doc=""),
    ],
)
def test_the_same_calls_give_the_same_schema_as_pyiceberg(change, version):
    assert_like_pyiceberg(table(**{"format-version": version}), change)
    mapping = create_name_mapping(table().schema()).to_json()
    mapped = table(**{"format-version": version, "schema.name-mapping.default": mapping})
    assert_like_pyiceberg(mapped, change)


def test_what_may_contradict_rows_needs_permission():
    base = table()
    refused = (
        lambda u: u.add_column("x", LongType(), required=True),
        lambda u: u.update_column("Name", required=True),
        lambda u: u.update_column("id", StringType()),
    )
    for change in refused:
        with pytest.raises(SchemaError):
            evolved(base, change)
        assert_like_pyiceberg(base, change, allow_incompatible_changes=True)


UNION = Schema(
    (
        NestedField(1, "Name", StringType(), doc="who"),
        NestedField(2, "id", LongType()),
        NestedField(3, "price", DecimalType(5, 2)),
        NestedField(4, "city", StringType()),
        NestedField(
            5,
            "place",
            StructType(
                (
                    NestedField(6, "w", StructType((NestedField(7, "deep", LongType()),))),
                    NestedField(8, "x", DoubleType()),
                )
            ),
        ),
        NestedField(
            9,
            "points",
            ListType(
                10,
                StructType((NestedField(11, "z", LongType()), NestedField(12, "w", LongType()))),
            ),
        ),
        NestedField(
            13,
            "by_day",
            MapType(14, StringType(), 15, StructType((NestedField(16, "n", IntegerType()),))),
        ),
        NestedField(17, "tags", ListType(18, DoubleType())),
    )
)


def test_a_union_by_name_is_like_pyicebergs():
    base = table(Schema(SCHEMA.fields))
    metadata = assert_like_pyiceberg(base, lambda u: u.union_by_name(UNION))
    assert metadata.schema().find_type("id") == LongType()
    assert metadata.schema().find_type("price") == DecimalType(9, 2)
    again = UpdateSchema(metadata).union_by_name(UNION)
    assert again.apply(metadata).updates == ()


def test_a_union_takes_arrow_schemas_and_follows_case_when_told():
    base = table(Schema(SCHEMA.fields))
    arrow = pa.schema({"NAME": pa.string(), "amount": pa.float64()})
    with pytest.raises(SchemaError, match="'Name' already"):
        UpdateSchema(base).union_by_name(arrow)
    schema = evolved(base, lambda u: u.union_by_name(arrow), case_sensitive=False).schema()
    assert [f.name for f in schema.fields] == [*(f.name for f in SCHEMA.fields), "amount"]


def test_a_union_of_types_that_do_not_fit_is_refused():
    base = table()
    for kind in (POINT, ListType(50, LongType())):
        with pytest.raises(SchemaError, match="'Name'"):
            UpdateSchema(base).union_by_name(Schema((NestedField(1, "Name", kind),)))
    with pytest.raises(SchemaError, match="from string to long"):
        UpdateSchema(base).union_by_name(Schema((NestedField(1, "Name", LongType()),)))


def test_a_dotted_path_adds_inside_a_struct_and_never_guesses():
    schema = evolved(table(), lambda u: u.add_column("place.z", LongType())).schema()
    assert schema.find_field("place.z").field_type == LongType()
    with pytest.raises(SchemaError, match="no column 'nowhere'") as failure:
        UpdateSchema(table()).add_column("nowhere.z", LongType())
    assert "tuple" in str(failure.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda u: u.add_column("name", LongType()), "'Name' already"),
        (lambda u: u.add_column("ID", LongType()), "'id' already"),
        (lambda u: u.add_column("new", LongType()).add_column("NEW", LongType()), "'new' already"),
        (lambda u: u.add_column(("place", "X"), LongType()), "'x' already"),
        (lambda u: u.rename_column("id", "name"), "'id'|'name'"),
        (lambda u: u.rename_column("place.x", "Y"), "'Y'"),
        (lambda u: u.rename_column("id", "k").add_column("K", LongType()), "'k' already"),
        (
            lambda u: u.add_column(
                "s", StructType((NestedField(1, "a", LongType()), NestedField(2, "A", LongType())))
            ),
            "twice",
        ),
        (lambda u: u.add_column("", LongType()), "without a name"),
        (lambda u: u.rename_column("id", ""), "to nothing"),
        (lambda u: u.add_column(("Name", "x"), LongType()), "not a struct"),
        (lambda u: u.delete_column("nothing"), "no field"),
        (lambda u: u.delete_column("tags.element"), "not a field of a struct"),
        (lambda u: u.delete_column("by_day.key"), "not a field of a struct"),
        (lambda u: u.rename_column("by_day.value", "v"), "not a field of a struct"),
        (lambda u: u.update_column("by_day.key", doc="k"), "keys of a map"),
        (lambda u: u.add_column("place.z", LongType()).delete_column("place"), "is added to it"),
        (lambda u: u.rename_column("Name", "n").delete_column("Name"), "changed in the same"),
        (lambda u: u.delete_column("Name").rename_column("Name", "n"), "dropped in the same"),
        (lambda u: u.delete_column("place").update_column("place.x", DoubleType()), "dropped"),
        (
            lambda u: u.update_column("id", IntegerType()).update_column("id", StringType()),
            "int to string",
        ),
        (lambda u: u.update_column("price", DecimalType(9, 3)), "more digits"),
        (lambda u: u.update_column("price", DecimalType(8, 2)), "more digits"),
        (lambda u: u.update_column("place", StringType()), "struct"),
        (lambda u: u.move_before("id", "place.x"), "another struct"),
        (lambda u: u.move_after("id", "id"), "itself"),
        (lambda u: u.move_first("tags.element"), "not a field of a struct"),
        (lambda u: u.move_first("nothing"), "no field"),
        (lambda u: u.delete_column("id"), "identifier field 'id'"),
        (lambda u: u.make_column_optional("id"), "must be a required"),
        (lambda u: u.set_identifier_fields("nothing"), "no field"),
        (lambda u: u.set_identifier_fields("Name"), "must be a required"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_by_name(change, message):
    base = table()
    with pytest.raises(ValidationError, match=message):
        evolved(base, change)


@pytest.mark.parametrize("text", ["timestamp_ns", "unknown", "variant", "geometry(srid:3857)"])
def test_types_of_version_3_are_refused_before_it_by_that_name(text):
    base = table()
    with pytest.raises(UnsupportedError, match=r"'x' is of type .* version 3 \(v3\)"):
        evolved(base, lambda u: u.add_column("x", text))
    assert evolved(replace(base, format_version=3), lambda u: u.add_column("x", text))


@pytest.mark.parametrize(
    "wanted", [IntegerType(), StringType(), ListType(0, "int"), MapType(0, "string", 0, "date")]
)
def test_an_unknown_column_may_get_any_type_under_the_same_id(wanted):
    base = replace(table(), format_version=3)
    base = commit(base, UpdateSchema(base).add_column("x", "unknown"))
    known = base.schema().find_field("x")
    changed = commit(base, UpdateSchema(base).update_column("x", wanted)).schema()
    assert changed.find_field("x").field_id == known.field_id
    assert type(changed.find_type("x")) is type(wanted)
    inside = [f.field_id for f in walk(changed.find_type("x"))]
    assert inside == list(range(known.field_id + 1, known.field_id + 1 + len(inside)))


def test_a_union_with_unknown_columns_keeps_the_known_types_and_finds_the_others():
    old = Schema((NestedField(1, "a", "unknown"), NestedField(2, "b", "int")))
    base = table(old, **{"format-version": "3"})
    new = Schema((NestedField(1, "a", ListType(3, "long")), NestedField(2, "b", "unknown")))
    found = commit(base, UpdateSchema(base).union_by_name(new)).schema()
    assert [str(f.field_type) for f in found.fields] == ["list<long>", "int"]


def test_default_values_belong_to_version_3():
    with pytest.raises(UnsupportedError, match="v3"):
        UpdateSchema(table()).add_column("x", LongType(), default_value=1)


def test_a_refused_call_leaves_the_others_as_they_were():
    update = UpdateSchema(table())
    update.add_column("a", LongType())
    with pytest.raises(SchemaError):
        update.add_column("A", LongType())
    schema = commit(table(), UpdateSchema(table()).add_column("a", LongType())).schema()
    base = update._base
    assert commit(base, update).schema() == schema


def test_two_columns_can_swap_their_names():
    schema = evolved(
        table(), lambda u: u.rename_column("price", "tags").rename_column("tags", "price")
    ).schema()
    assert schema.find_field("tags").field_type == DecimalType(9, 2)
    assert isinstance(schema.find_field("price").field_type, ListType)


def test_a_moved_column_may_be_dropped_but_not_one_that_another_is_moved_beside():
    change = lambda u: u.move_first("price").delete_column("price")  # noqa: E731
    assert [f.name for f in evolved(table(), change).schema().fields][:2] == ["id", "Name"]
    with pytest.raises(SchemaError, match="moved beside"):
        UpdateSchema(table()).move_after("price", "Name").delete_column("Name")


def test_a_column_is_not_dropped_over_changes_deep_inside_it():
    deep = StructType((NestedField(2, "b", StructType((NestedField(3, "c", LongType()),))),))
    base = table(Schema((NestedField(1, "a", deep), NestedField(4, "k", LongType()))))
    for change in (
        lambda u: u.add_column("a.b.d", LongType()),
        lambda u: u.rename_column("a.b.c", "e"),
    ):
        update = UpdateSchema(base)
        change(update)
        with pytest.raises(SchemaError, match="Cannot drop column 'a'"):
            update.delete_column("a")


def test_an_old_clash_of_case_does_not_block_other_changes():
    clashing = Schema((NestedField(1, "a", LongType()), NestedField(2, "A", LongType())))
    schema = evolved(table(clashing), lambda u: u.add_column("b", LongType())).schema()
    assert [f.name for f in schema.fields] == ["a", "A", "b"]


def test_identifier_fields_follow_renames_and_can_be_chosen_anew():
    base = table()
    assert evolved(
        base, lambda u: u.rename_column("id", "key")
    ).schema().identifier_field_names() == {"key"}
    by_new_name = evolved(base, lambda u: u.rename_column("id", "key").set_identifier_fields("key"))
    assert by_new_name.schema().identifier_field_ids == (1,)
    none = evolved(base, lambda u: u.set_identifier_fields())
    assert none.schema().identifier_field_ids == ()
    assert none.current_schema_id == 1
    dropped = evolved(base, lambda u: u.set_identifier_fields().delete_column("id"))
    assert not dropped.schema().contains("id")
    added = evolved(
        base,
        lambda u: u.add_column("code", StringType(), required=True).set_identifier_fields(
            "id", "code"
        ),
        allow_incompatible_changes=True,
    )
    assert added.schema().identifier_field_names() == {"id", "code"}


def test_a_column_that_the_table_is_partitioned_or_sorted_by_cannot_be_dropped():
    spec = PartitionSpec(0, (PartitionField(11, 1000, BucketTransform(4), "x_bucket"),))
    schema = Schema(
        (
            NestedField(1, "id", LongType()),
            NestedField(2, "s", StructType((NestedField(11, "x", LongType()),))),
        )
    )
    base = table(schema, spec, SortOrder(1, (SortField(1),)))
    for path in ("s.x", "s"):
        with pytest.raises(SchemaError, match=r"'s.x': partition field 'x_bucket' needs it"):
            evolved(base, lambda u, path=path: u.delete_column(path))
    with pytest.raises(SchemaError, match="'id': sort field identity needs it"):
        evolved(base, lambda u: u.delete_column("id"))
    with pytest.raises(ValidationError, match="x_bucket"):
        evolved(base, lambda u: u.add_column("x_bucket", LongType()))


def test_a_spec_that_fits_no_more_does_not_block_other_changes():
    spec = PartitionSpec(0, (PartitionField(1, 1000, UnknownTransform("zorder"), "id_z"),))
    base = replace(table(Schema(SCHEMA.fields)), partition_specs=(spec,))
    assert evolved(base, lambda u: u.add_column("b", LongType())).schema().contains("b")
    with pytest.raises(SchemaError, match="'id_z' needs it"):
        evolved(base, lambda u: u.delete_column("id"))


def test_settings_of_single_columns_follow_renames_and_go_with_their_column():
    base = table(
        **{
            "write.metadata.metrics.column.id": "full",
            "write.metadata.metrics.column.place.x": "none",
            "write.parquet.bloom-filter-enabled.column.Name": "true",
            "write.metadata.metrics.default": "counts",
        }
    )
    metadata = evolved(
        base,
        lambda u: (
            u.rename_column("id", "key").rename_column("place", "where").delete_column("Name")
        ),
    )
    properties = {k: v for k, v in metadata.properties.items() if "column" in k or "default" in k}
    assert properties == {
        "write.metadata.metrics.column.key": "full",
        "write.metadata.metrics.column.where.x": "none",
        "write.metadata.metrics.default": "counts",
    }


def test_the_name_mapping_finds_renamed_columns_by_both_names_and_new_ones():
    mapping = create_name_mapping(table().schema()).to_json()
    metadata = evolved(
        table(**{"schema.name-mapping.default": mapping}),
        lambda u: u.rename_column("Name", "title").add_column(("points", "w"), POINT),
    )
    found = metadata.name_mapping()
    assert isinstance(found, NameMapping)
    assert found.find("Name") == found.find("title")
    assert (
        found.find("points", "element", "w", "x").field_id
        == metadata.schema().find_field("points.w.x").field_id
    )


MAPPED = create_name_mapping(table().schema())


@pytest.mark.parametrize(
    ("change", "added"),
    [
        (lambda u: u.delete_column("Name").add_column("Name", LongType()), {}),
        (lambda u: u.rename_column("Name", "b"), {((), "b"): "Name"}),
        (lambda u: u.rename_column("Name", "id").rename_column("id", "Name"), {}),
        (lambda u: u.rename_column("place.x", "y").rename_column("place.y", "x"), {}),
        (lambda u: u.delete_column("points.z").add_column(("points", "z"), StringType()), {}),
        (lambda u: u.delete_column("by_day.n").add_column(("by_day", "n"), StringType()), {}),
        (lambda u: u.delete_column("place").add_column("place", POINT), {}),
        (lambda u: u.delete_column("Name").add_column("NAME", LongType()), {((), "NAME"): 0}),
    ],
)
def test_a_name_stays_with_the_field_that_had_it_first(change, added):
    base = table(**{"schema.name-mapping.default": MAPPED.to_json()})
    metadata = evolved(base, change)
    before = owners(MAPPED.fields)
    ids = {name: i for (path, name), i in before.items() if not path}
    expected = {at: ids.get(owner, metadata.last_column_id) for at, owner in added.items()}
    assert owners(metadata.name_mapping().fields) == before | expected


def test_a_name_that_is_free_again_in_the_schema_is_not_free_in_files():
    base = table(**{"schema.name-mapping.default": MAPPED.to_json()})
    for change in (
        lambda u: u.rename_column("Name", "b"),
        lambda u: u.add_column("Name", LongType()),
        lambda u: u.update_column("Name", doc="another one"),
        lambda u: u.rename_column("Name", "c"),
        lambda u: u.rename_column("c", "d"),
        lambda u: u.rename_column("d", "Name"),
    ):
        base = evolved(base, change)
    new, old = base.last_column_id, MAPPED.find("Name").field_id
    found = base.name_mapping()
    assert [found.find(name).field_id for name in ("Name", "b")] == [old, old]
    assert [found.find(name).field_id for name in ("c", "d")] == [new, new]


def test_no_change_commits_nothing():
    base = table()
    assert evolved(base, lambda _: None) is base
    assert evolved(base, lambda u: u.update_column("id", IntegerType(), doc="the key")) is base
    assert evolved(base, lambda u: u.move_first("id")) is base


def test_going_back_takes_the_old_schema_again():
    base = table()
    there = evolved(base, lambda u: u.rename_column("Name", "title"))
    back = evolved(there, lambda u: u.rename_column("title", "Name"))
    assert (there.current_schema_id, back.current_schema_id) == (1, 0)
    assert len(back.schemas) == 2


def test_a_change_is_made_again_on_a_schema_that_others_extended():
    base = table()
    update = UpdateSchema(base).add_column("mine", LongType()).rename_column("Name", "title")
    newer = evolved(base, lambda u: u.add_column("theirs", NESTED))
    schema = commit(newer, update).schema()
    assert [f.name for f in schema.fields][-2:] == ["theirs", "mine"]
    assert schema.find_field("mine").field_id == newer.last_column_id + 1
    stale = UpdateSchema(base).add_column("b", LongType()).apply(base).requirements
    assert {type(r).__name__ for r in stale} >= {
        "AssertCurrentSchemaId",
        "AssertLastAssignedFieldId",
    }
    for requirement in stale[1:]:
        with pytest.raises(CommitFailedError):
            requirement.check(newer)


def test_a_column_that_became_another_one_meanwhile_is_not_touched():
    base = table()
    update = UpdateSchema(base).delete_column("Name")
    newer = evolved(base, lambda u: u.delete_column("Name").add_column("Name", LongType()))
    with pytest.raises(CommitFailedError, match="'Name' is another one"):
        update.apply(newer)
    gone = evolved(base, lambda u: u.delete_column("Name"))
    with pytest.raises(ValidationError, match="'Name'"):
        update.apply(gone)


PLACES = sorted(table().schema().column_names)
KINDS = (LongType(), DoubleType(), DecimalType(12, 2), NESTED, MapType(1, StringType(), 2, POINT))
CALLS = st.one_of(
    st.tuples(
        st.just("add_column"), st.tuples(st.sampled_from(("n1", "n2"))), st.sampled_from(KINDS)
    ),
    st.tuples(
        st.just("add_column"),
        st.tuples(st.sampled_from(("place", "points", "by_day")), st.sampled_from(("n1", "n2"))),
        st.sampled_from(KINDS),
    ),
    st.tuples(st.just("delete_column"), st.sampled_from(PLACES)),
    st.tuples(
        st.just("rename_column"), st.sampled_from(PLACES), st.sampled_from(("r1", "r2", "x"))
    ),
    st.tuples(st.just("update_column"), st.sampled_from(PLACES), st.sampled_from(KINDS[:3])),
    st.tuples(st.just("make_column_optional"), st.sampled_from(PLACES)),
    st.tuples(st.just("move_first"), st.sampled_from((*PLACES, "n1"))),
    st.tuples(
        st.sampled_from(("move_before", "move_after")),
        st.sampled_from((*PLACES, "n1")),
        st.sampled_from(PLACES),
    ),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(CALLS, min_size=1, max_size=5))
def test_whatever_both_accept_both_make_the_same_of(calls):
    base = table(Schema(SCHEMA.fields))
    mapping = create_name_mapping(base.schema()).to_json()
    base = table(Schema(SCHEMA.fields), **{"schema.name-mapping.default": mapping})
    transaction = peer_transaction(base)
    ours, theirs = UpdateSchema(base), transaction.update_schema()
    try:
        for name, *arguments in calls:
            getattr(ours, name)(*arguments)
            getattr(theirs, name)(*map(converted, arguments))
        ours.apply(base)
        theirs.commit()
    except (ValidationError, ValueError, KeyError, StopIteration):
        return
    assert_like_pyiceberg(base, lambda u: [getattr(u, name)(*rest) for name, *rest in calls])
