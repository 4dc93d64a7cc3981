"""The size of a schema when each reference to a named type stands for the whole type.

A type may be referred to twice by the next one, and so on: a few hundred bytes expand to more types
than any memory holds. And values may take no bytes, so that a file states any number of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from icecomb.format.avro.varint import read_long
from icecomb.format.input_limit import FIXED, TYPES, UNPACKED, unpacked_bytes

Block: TypeAlias = tuple[int, bytes]
"""A block: its number of values, and the values, encoded and uncompressed."""
_LEAST: Final = {
    "null": 0,
    "boolean": 1,
    "int": 1,
    "long": 1,
    "float": 4,
    "double": 8,
    "bytes": 1,
    "string": 1,
}
_VALUE_BYTES: Final = 256
"""About the memory of a value that takes no bytes in a file."""
_CELL_BYTES: Final = 64
"""More than a value of a column takes while columns grow, besides its own bytes."""
OBJECT_CELLS: Final = 4
"""How many times that a value takes as one of Python, with its part of a dictionary."""


@dataclass(frozen=True, slots=True)
class SchemaSize:
    """The size of a schema.

    Attributes:
        types: The number of types in it, unions and their branches among them.
        least: The least number of bytes of a value.
        has_empty_items: Whether there are arrays of values that take no bytes.
        memory: About the most memory of a value in columns, besides its own bytes and the items of
            its arrays and maps.
        of_items: The same of a byte of such items; 0 if there are none.
    """

    types: int
    least: int
    has_empty_items: bool = False
    memory: int = _CELL_BYTES
    of_items: int = 0

    def check_count(self, count: int, size: int) -> None:
        """Check the number of values that a block states.

        Args:
            count: The number of values.
            size: The length of the block, in bytes.

        Raises:
            ValueError: If the block cannot hold as many.
        """
        if count * self.least > size:
            raise ValueError(f"a block states {count} records, more than its bytes can hold")
        if count > size and count > most_empty():
            raise ValueError(f"a block states {count} empty records, {_above()}")

    def most_memory(self, count: int, size: int) -> int:
        """Return about the most memory that values take as columns, whatever they hold.

        Args:
            count: The number of values.
            size: The length of the values, in bytes.
        """
        return count * self.memory + size * self.of_items

    def runs(self, blocks: Iterable[Block], most: int) -> Iterator[list[Block]]:
        """Yield runs of adjacent blocks that take at most so much memory, or are one block."""
        run, rows, length = list[Block](), 0, 0
        for count, block in blocks:
            rows += count
            length += len(block)
            if run and self.most_memory(rows, length) > most:
                yield run
                run, rows, length = [], count, len(block)
            run.append((count, block))
        if run:
            yield run


def schema_size(schema: Any) -> SchemaSize:
    """Return the size of a schema.

    Args:
        schema: The schema as JSON values.

    Raises:
        ValueError: If it is larger than `TYPES`, a type contains itself or is not one of Avro, or
            the size of a `fixed` is not from 0 to `FIXED`.
    """
    try:
        return _size(schema, {})
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"its schema is not an Avro schema ({type(error).__name__}: {error})"
        ) from error


def most_empty() -> int:
    """Return the most values of a file that may take no bytes."""
    return unpacked_bytes() // _VALUE_BYTES


def check_items(schema: Any, data: bytes, count: int, most: int, cells: int = 1) -> None:
    """Check how much memory some values take, by how many items are in all arrays and maps.

    Args:
        schema: The plain schema of the values.
        data: The values, encoded.
        count: The number of values.
        most: The most memory that they may take, in bytes.
        cells: What to multiply that of a column's value with: 1, or `OBJECT_CELLS`.

    Raises:
        IndexError, ValueError: If they take more, or the bytes are damaged.
    """
    walk = _Walk(data, most, cells)
    walk.take(schema, count)
    for _ in range(count):
        walk.value(schema)


def _size(schema: Any, known: dict[str, SchemaSize | None]) -> SchemaSize:
    if isinstance(schema, str):
        name = schema.rpartition(".")[2]
        if name not in known:
            return SchemaSize(1, _LEAST.get(schema, 1))
        found = known[name]
        if found is None:
            raise ValueError(f"its type {name} contains itself")
        return found
    if isinstance(schema, list):
        branches = [_size(branch, known) for branch in schema]
        least = min((branch.least for branch in branches), default=0)
        memory = max((branch.memory for branch in branches), default=_CELL_BYTES)
        return _joined(branches, 1 + least, memory)
    named = "name" in schema
    name = schema["name"].rpartition(".")[2] if named else ""
    before = known.get(name)
    if named:
        known[name] = None
    size = _of_complex(schema, known)
    if named:  # another type of that name, in another namespace, may be meant
        known[name] = size if before is None or size.types > before.types else before
    return size


def _of_complex(schema: Any, known: dict[str, SchemaSize | None]) -> SchemaSize:
    kind = schema["type"]
    if kind in ("record", "error"):
        if not all(isinstance(field["name"], str) for field in schema["fields"]):
            raise ValueError("a field has no name")
        fields = [_size(field["type"], known) for field in schema["fields"]]
        memory = max(sum(field.memory for field in fields), _CELL_BYTES)
        return _joined(fields, sum(field.least for field in fields), memory)
    if kind in ("array", "map"):
        items = _size(schema["items" if kind == "array" else "values"], known)
        least, memory = items.least, items.memory
        if kind == "map":
            least, memory = least + 1, memory + _CELL_BYTES
        joined = _joined([items], 1, _CELL_BYTES, is_empty=least == 0)
        return replace(joined, of_items=max(joined.of_items, memory // max(least, 1)))
    if kind == "fixed":
        # a null takes as much as a value
        return SchemaSize(1, _fixed(schema["size"]), memory=_CELL_BYTES + 3 * schema["size"])
    if kind == "enum":
        return SchemaSize(1, 1)
    return _size(kind, known)


def _joined(
    parts: Iterable[SchemaSize], least: int, memory: int, *, is_empty: bool = False
) -> SchemaSize:
    types, of_items = 1, 0
    for part in parts:
        types += part.types
        is_empty = is_empty or part.has_empty_items
        of_items = max(of_items, part.of_items)
    if types > TYPES.value:
        raise ValueError(f"its schema has more types than the limit ({TYPES})")
    return SchemaSize(types, least, is_empty, memory, of_items)


def _fixed(size: Any) -> int:
    if type(size) is not int or size < 0:
        raise ValueError(f"a fixed value of {size!r} bytes is none")
    if size > FIXED.value:
        raise ValueError(f"a fixed value of {size} bytes is longer than the limit ({FIXED})")
    return size


def _above() -> str:
    return f"more than a file may have by the limit ({UNPACKED})"


class _Walk:
    """A pass over encoded values that makes nothing of them."""

    def __init__(self, data: bytes, most: int, cells: int) -> None:
        self._data = data
        self._at = 0
        self._left = most
        self._cells = cells
        self._sizes: dict[int, SchemaSize] = {}

    def take(self, schema: Any, count: int) -> SchemaSize:
        """Count the memory of values, and return the size of their schema."""
        size = self._sizes.get(id(schema))
        if size is None:
            size = self._sizes[id(schema)] = _size(schema, {})
        self._left -= count * (size.memory * self._cells if size.least else _VALUE_BYTES)
        if self._left < 0:
            raise ValueError(f"its records and their items are {_above()}")
        return size

    def value(self, schema: Any) -> None:
        """Pass over a value of a plain schema."""
        if isinstance(schema, list):
            self.value(schema[self._index()])
        elif isinstance(schema, str):
            self._primitive(schema)
        elif schema["type"] == "record":
            for field in schema["fields"]:
                self.value(field["type"])
        elif schema["type"] == "fixed":
            self._advance(schema["size"])
        elif schema["type"] == "enum":
            self._long()
        else:
            self._items(schema)

    def _primitive(self, kind: str) -> None:
        if kind in ("bytes", "string"):
            self._advance(self._index())
        elif kind in ("int", "long"):
            self._long()
        else:
            self._advance(_LEAST[kind])

    def _items(self, schema: Any) -> None:
        is_map = schema["type"] == "map"
        inner = schema["values" if is_map else "items"]
        while count := self._long():
            if count < 0:
                count = -count
                self._long()
            size = self.take(inner, count)
            if is_map:
                self.take("string", count)
            elif size.least == 0:
                continue
            for _ in range(count):
                if is_map:
                    self._advance(self._index())
                self.value(inner)

    def _index(self) -> int:
        found = self._long()
        if found < 0:
            raise ValueError("a length or a branch is negative")
        return found

    def _advance(self, size: int) -> None:
        self._at += size
        if self._at > len(self._data):
            raise ValueError("it ends too early")

    def _long(self) -> int:
        value, self._at = read_long(self._data, self._at)
        return value
