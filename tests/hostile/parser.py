"""What a parser is in the suite of hostile input: sound inputs, how they are changed, and what reads them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from icecomb.catalog import load_catalog
from icecomb.format.errors import IcecombError
from icecomb.format.storage.file_io import FileIO
from tests.hostile.mutation import changed_bytes


class Memory(FileIO):
    """Files in memory."""

    def __init__(self, **files: bytes) -> None:
        super().__init__()
        self.files = files

    def read(self, location: str) -> bytes:
        return self.files[location.rpartition("/")[2]]

    def open_input(self, location: str, size: int | None = None) -> Any:  # noqa: ARG002
        return pa.BufferReader(self.read(location))

    def size(self, location: str) -> int:
        return len(self.read(location))


@dataclass(frozen=True)
class Parser:
    """A parser, and what it is given.

    Attributes:
        seeds: Sound inputs.
        parse: What parses one.
        change: What changes one.
        extremes: Inputs made to take memory or stack.
        refuses: Whether sound inputs may be refusals.
    """

    seeds: list[bytes]
    parse: Callable[[bytes], object]
    change: tuple[Callable[[random.Random, bytes], bytes], ...] = (changed_bytes,)
    extremes: Callable[[], Iterable[bytes]] = tuple
    refuses: bool = False

    def check(self) -> None:
        """Parse the sound inputs."""
        for one in self.seeds:
            with suppress(*[IcecombError] * self.refuses):
                self.parse(one)


class Sound:
    """Sound files of all kinds, made in a folder."""

    def __init__(self, folder: Path) -> None:
        self.lake = lake = load_catalog("lake", type="hadoop", warehouse=str(folder / "lake"))
        lake.create_namespace("db")
        rows = pa.table({"id": [1, 2, 3], "s": ["a", "b", None], "l": [[1], [], None]})
        properties = {"format-version": "3", "write.format.default": "avro"}
        self.table = lake.create_table("db.t", rows.schema, properties=properties)
        self.table.append(rows)
        self.table.append(rows)
        self.table.delete("id = 2")
        home = folder / "lake/db/t"
        self.metadata = max(home.glob("metadata/v*.json"), key=lambda p: p.stat().st_mtime_ns)
        self.manifests = [p.read_bytes() for p in home.glob("metadata/*-m*.avro")]
        self.puffins = [p.read_bytes() for p in home.glob("data/**/*.puffin")]
        self.rows = [p.read_bytes() for p in home.glob("data/**/*.avro")]
        self.arrow = rows


def in_memory(name: str, use: Callable[[FileIO, str], object]) -> Callable[[bytes], object]:
    return lambda data: use(Memory(**{name: data}), name)


def case(parser: Parser, seed: int, number: int) -> bytes:
    """The changed input of a number."""
    draw = random.Random(f"{seed} {number}")
    change = parser.change[number % len(parser.change)]
    return change(draw, draw.choice(parser.seeds))


def changed(parser: Parser, seed: int, numbers: Iterable[int]) -> Iterator[bytes]:
    """Yield sound inputs, each with some changes."""
    for number in numbers:
        yield case(parser, seed, number)
