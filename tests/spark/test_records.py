"""The records that the bridge gets of the planner's messages."""

from __future__ import annotations

import pytest

from icecomb.spark.records import protocol_java

MESSAGES = '''
class Held(Opaque):
    """What only the planner reads."""

    path: str

class Row(Reported):
    size: Long

class Part(Message):
    pass

class AskOnce(Unrepeatable):
    """All kinds of members."""

    a_name: str
    is_it: bool
    count: int
    bytes: Long
    maybe_name: str | None
    maybe_it: bool | None
    maybe_count: int | None
    maybe_bytes: Long | None
    anything: Any
    held: Held | None
    part: Part
    row: Row | None
    names: tuple[str, ...] | None
    offsets: tuple[Long, ...]
    groups: tuple[tuple[int, ...], ...]
    values: tuple[Any, ...]
    lines: tuple[tuple[Any, ...], ...]
    parts: tuple[Part, ...]
    rows: tuple[Row, ...]
    many_held: tuple[Held, ...]
    texts: Mapping[str, str]
    counts: Mapping[str, Long]
    by_field: Mapping[str, Any] | None

class AskAgain(Repeatable):
    name: str
    password: str = field(repr=False)
    note: str | None = None
'''


def _written(folder, messages):
    (folder / "message.py").write_text("PROTOCOL: Final = 8\n")
    (folder / "some.py").write_text(messages)
    return protocol_java(folder)


def test_a_message_of_each_kind_with_each_type_is_a_record(tmp_path):
    text = _written(tmp_path, MESSAGES)
    assert "int VERSION = 8;" in text
    assert "record Held" not in text
    once = (
        "String aName, boolean isIt, int count, long bytes, "
        "String maybeName, Boolean maybeIt, Integer maybeCount, Long maybeBytes, "
        "JsonNode anything, JsonNode held, Part part, Row row, "
        "List<String> names, List<Long> offsets, List<List<Integer>> groups, "
        "JsonNode values, List<JsonNode> lines, List<Part> parts, JsonNode rows, "
        "List<JsonNode> manyHeld, "
        "Map<String, String> texts, Map<String, Long> counts, Map<String, JsonNode> byField"
    )
    *_, row, part, asked_once, asked_again = text.split("\n  public record ")
    assert row == "Row(long size) implements Reported {}\n"
    assert part == "Part() implements Message {}\n"
    assert asked_once == f"AskOnce({once}) implements Unrepeatable {{}}\n"
    assert asked_again.startswith(
        "AskAgain(String name, String password, String note) implements Repeatable {\n"
    )


def test_a_record_prints_no_more_than_its_message(tmp_path):
    text = _written(tmp_path, MESSAGES)
    assert 'return "AskAgain[" + "name=" + name + ", " + "note=" + note + "]";' in text
    assert text.count("toString") == 1


def test_a_member_of_a_type_that_has_no_java_type_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"dict\[str, int\] has no Java type"):
        _written(tmp_path, "class Part(Message):\n    counts: dict[str, int]\n")
