"""Charts of a table's health as placed bars and texts, which the page draws as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from icecomb.catalog.cli.output.output import moment

if TYPE_CHECKING:
    from icecomb.catalog.health.table_health import Charts, PartitionFacts

WIDTH: Final = 360
_HEIGHT: Final = 120
_LABELS: Final = 18
_ROW: Final = 18
_NAMES: Final = 140
_LONGEST: Final = 22
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle and its tooltip."""

    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Text:
    """A text; `anchor` is SVG's `text-anchor`."""

    x: float
    y: float
    text: str
    anchor: str = "start"


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of bars and texts, `WIDTH` wide; `base` is the height of a line, 0 for none."""

    title: str
    height: int
    bars: tuple[Bar, ...]
    texts: tuple[Text, ...]
    base: int = 0
    width: int = WIDTH


def drawn(charts: Charts) -> Iterator[Chart]:
    """Yield the charts of a table that have something to show."""
    if charts.commits:
        yield _timeline(charts.commits)
    if any(charts.sizes):
        yield _sizes(charts.sizes)
    if charts.partitions:
        yield _partitions(charts.partitions)


def size_text(size: int) -> str:
    """Format a number of bytes for people: `1.5 GiB`."""
    value, unit = float(size), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{size} B" if not unit else f"{value:.1f} {_UNITS[unit]}"


def _timeline(commits: Sequence[tuple[int, int]]) -> Chart:
    titles = [f"{moment(begin)}: {count:,} snapshots" for begin, count in commits]
    labels = (moment(commits[0][0])[:10], moment(commits[-1][0])[:10])
    total = sum(count for _, count in commits)
    return _columns(f"{total:,} snapshots by time", [count for _, count in commits], titles, labels)


def _sizes(sizes: Sequence[int]) -> Chart:
    there = [at for at, count in enumerate(sizes) if count]
    classes = range(there[0], there[-1] + 1)
    titles = [
        f"{size_text(2**at)} to {size_text(2 ** (at + 1))}: {sizes[at]:,} files" for at in classes
    ]
    labels = (size_text(2 ** classes[0]), size_text(2 ** (classes[-1] + 1)))
    return _columns("Data files by size", [sizes[at] for at in classes], titles, labels)


def _columns(
    title: str, counts: Sequence[int], titles: Sequence[str], labels: tuple[str, str]
) -> Chart:
    step = WIDTH / len(counts)
    most = max(counts)
    base = _HEIGHT
    bars = []
    for at, (count, said) in enumerate(zip(counts, titles, strict=True)):
        if count:
            # at least 1.5 high, so that no bar is invisible
            height = round(max(1.5, (base - 4) * count / most), 2)
            width = round(max(step - 1, 0.5), 2)
            bars.append(Bar(round(at * step, 2), round(base - height, 2), width, height, said))
    texts = (
        Text(0, base + 13, labels[0]),
        Text(WIDTH, base + 13, labels[1], "end"),
    )
    return Chart(title, base + _LABELS, tuple(bars), texts, base)


def _partitions(partitions: Sequence[PartitionFacts]) -> Chart:
    most = max(1, *(one.size for one in partitions))
    bars, texts = [], []
    room = WIDTH - _NAMES - 64
    for at, one in enumerate(partitions):
        y = at * _ROW
        width = round(max(1.0, room * one.size / most), 2)
        said = f"{one.name}: {one.files:,} files, {size_text(one.size)}, {one.rows:,} rows"
        bars.append(Bar(_NAMES, y + 3, width, _ROW - 6, said))
        name = one.name if len(one.name) <= _LONGEST else f"{one.name[: _LONGEST - 1]}…"
        texts.append(Text(0, y + 13, name))
        texts.append(Text(_NAMES + width + 4, y + 13, size_text(one.size)))
    return Chart("Largest partitions", len(partitions) * _ROW, tuple(bars), tuple(texts))
