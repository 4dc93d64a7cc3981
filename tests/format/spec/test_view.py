"""View metadata: the examples of the view specification, and how versions come and go."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from icecomb.format.errors import CorruptFileError, UnsupportedError, ValidationError
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField, StringType
from icecomb.format.spec.view import (
    UnknownRepresentation,
    ViewDefinition,
    new_view_location,
    new_view_metadata,
    replace_view,
    view_from_json,
    view_to_json,
    with_properties,
)

SQL = "SELECT\n    COUNT(1), CAST(event_ts AS DATE)\nFROM events\nGROUP BY 2"
# The metadata file after the second statement in the specification's appendix
EXAMPLE: dict[str, Any] = {
    "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
    "format-version": 1,
    "location": "s3://bucket/warehouse/default.db/event_agg",
    "current-version-id": 2,
    "properties": {"comment": "Daily event counts"},
    "versions": [
        {
            "version-id": number,
            "timestamp-ms": timestamp,
            "schema-id": 1,
            "default-catalog": "prod",
            "default-namespace": ["default"],
            "summary": {"engine-name": "Spark", "engine-version": "3.3.2"},
            "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
        }
        for number, timestamp, sql in (
            (1, 1573518431292, SQL),
            (2, 1573518981593, SQL.replace("events", "prod.default.events")),
        )
    ],
    "schemas": [
        {
            "schema-id": 1,
            "type": "struct",
            "fields": [
                {
                    "id": 1,
                    "name": "event_count",
                    "required": False,
                    "type": "int",
                    "doc": "Count of events",
                },
                {"id": 2, "name": "event_date", "required": False, "type": "date"},
            ],
        }
    ],
    "version-log": [
        {"timestamp-ms": 1573518431292, "version-id": 1},
        {"timestamp-ms": 1573518981593, "version-id": 2},
    ],
}

COLUMNS = Schema(
    (
        NestedField(7, "id", LongType(), required=False),
        NestedField(9, "s", StringType(), required=False),
    )
)


def definition(*queries: str, **dialects: str) -> ViewDefinition:
    return ViewDefinition(
        COLUMNS, dict(zip(("spark", "trino"), queries, strict=False)) | dialects, ("db",)
    )


def test_the_specifications_example_is_read_and_written_back():
    view = view_from_json(json.dumps(EXAMPLE))
    assert view.current_version.version_id == 2
    assert view.current_version.default_catalog == "prod"
    assert view.current_version.sql_for("spark") == SQL.replace("events", "prod.default.events")
    assert view.schema().find_field("event_count").doc == "Count of events"
    assert json.loads(view_to_json(view)) == EXAMPLE


def test_what_is_not_known_is_kept():
    raw = json.loads(json.dumps(EXAMPLE)) | {"later": [1]}
    version = raw["versions"][1]
    version["storage-table"] = {"namespace": ["default"], "name": "event_agg_mv__storage"}
    version["representations"] += [{"type": "ast", "tree": {"a": 1}}]
    version["representations"][0]["hint"] = "x"
    view = view_from_json(json.dumps(raw))
    assert isinstance(view.current_version.representations[1], UnknownRepresentation)
    assert json.loads(view_to_json(with_properties(view, {}, ["none"]))) == raw


def test_a_version_for_every_engine_is_chosen_by_dialect():
    version = new_view_metadata(definition("a", "b"), "/v", {}).current_version
    assert [version.sql_for(name) for name in ("SPARK", "Trino", "hive")] == ["a", "b", "a"]


BROKEN = [
    (lambda d: d.pop("view-uuid"), "'view-uuid'"),
    (lambda d: d.update({"current-version-id": 3}), "current version 3"),
    (lambda d: d.update({"schemas": []}), "schema 1"),
    (lambda d: d.update({"versions": {}}), "'versions'"),
    (lambda d: d["versions"][0].pop("default-namespace"), "'default-namespace'"),
    (lambda d: d["versions"][0].update({"version-id": True}), "'version-id'"),
    (lambda d: d["versions"][0]["representations"][0].pop("sql"), "'sql'"),
    (lambda d: d["versions"][0]["representations"].append(d["versions"][0]["representations"][0]), "one query per dialect"),
    (lambda d: d["version-log"].append(3), "'timestamp-ms'"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "message"), BROKEN)
def test_broken_metadata_is_refused_with_the_field_at_fault(spoil, message):
    raw = json.loads(json.dumps(EXAMPLE))
    spoil(raw)
    with pytest.raises(CorruptFileError, match=f"^here: not valid view metadata: .*{message}"):
        view_from_json(json.dumps(raw), "here")


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "[" * 100_000])
def test_what_is_no_json_object_is_refused(text):
    with pytest.raises(CorruptFileError, match="not valid view metadata"):
        view_from_json(text)


def test_another_format_version_is_refused_by_its_number():
    with pytest.raises(UnsupportedError, match="here: view format version 2"):
        view_from_json(json.dumps(EXAMPLE | {"format-version": 2}), "here")


def test_columns_keep_their_ids_by_name_and_old_schemas_are_used_again():
    view = new_view_metadata(definition("a"), "/v/", {})
    assert [(f.name, f.field_id) for f in view.schema().fields] == [("id", 1), ("s", 2)]
    other = Schema(
        (
            NestedField(1, "s", StringType(), required=False),
            NestedField(2, "n", LongType(), required=False),
        )
    )
    changed = replace_view(view, ViewDefinition(other, {"spark": "b"}, ("db",)), {})
    assert [(f.name, f.field_id) for f in changed.schema().fields] == [("s", 2), ("n", 3)]
    back = replace_view(changed, definition("c"), {})
    assert (back.schema(), len(back.schemas), len(back.versions)) == (view.schema(), 2, 3)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=25), st.integers(1, 6))
def test_the_history_is_bounded_and_never_has_a_gap(choices, size):
    """Spec: at most so many versions are kept, the current one always; the log names known versions only."""
    view = new_view_metadata(definition("0"), "/v", {"version.history.num-entries": str(size)})
    for choice in choices:
        view = replace_view(view, definition(str(choice)), {})
        known = {version.version_id for version in view.versions}
        assert view.current_version.sql_for("spark") == str(choice)
        assert len(view.versions) <= max(size, 1)
        assert {entry.version_id for entry in view.version_log} <= known
        assert view.version_log[-1].version_id == view.current_version_id
        assert view_from_json(view_to_json(view)) == view


def test_a_dialect_may_be_dropped_only_on_purpose():
    view = new_view_metadata(definition("a", "b"), "/v", {})
    with pytest.raises(ValidationError, match="lose its query in trino"):
        replace_view(view, definition("a"), {})
    assert (
        replace_view(view, definition(SPARK="a", Trino="c"), {}).current_version.sql_for("trino")
        == "c"
    )
    allowed = {"replace.drop-dialect.allowed": "true"}
    assert replace_view(view, definition("x"), allowed).current_version.queries == {"spark": "x"}


def test_files_are_named_by_version_and_compressed_unless_told_otherwise():
    view = new_view_metadata(definition("a"), "/v", {})
    assert new_view_location(view, 3).startswith("/v/metadata/00003-")
    assert new_view_location(view, 3).endswith(".gz.metadata.json")
    plain = with_properties(
        view, {"write.metadata.compression-codec": "none", "write.metadata.path": "/w/"}
    )
    assert new_view_location(plain, 0).startswith("/w/00000-")
    assert ".gz" not in new_view_location(plain, 0)
    with pytest.raises(ValidationError, match="brotli"):
        new_view_location(with_properties(view, {"write.metadata.compression-codec": "brotli"}), 0)


@pytest.mark.parametrize("queries", [{}, {"spark": ""}, {"spark": "a", "SPARK": "b"}, {"": "a"}])
def test_a_definition_needs_one_query_a_dialect(queries):
    with pytest.raises(ValidationError):
        ViewDefinition(COLUMNS, queries, ("db",))
