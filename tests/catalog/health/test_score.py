"""The score against Amoro's formula, written down once more, file by file."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from icecomb.catalog.health.table_health import HealthScore
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from tests.catalog.health.made_table import (
    GB,
    MB,
    append,
    data,
    delete,
    equality,
    new_table,
    positions,
)

ENOUGH = 96 * MB


def amoro(files: list[DataFile]) -> HealthScore:
    """CommonPartitionEvaluator.getHealthScore, and the average of its partitions."""
    partitions: dict[object, list[DataFile]] = {}
    for file in files:
        partitions.setdefault(file.partition, []).append(file)
    points = [partition_score(members) for members in partitions.values()]
    return HealthScore(
        *(math.ceil(sum(column) / len(points)) for column in zip(*points, strict=True))
    )


def partition_score(files: list[DataFile]) -> tuple[int, int, int]:
    parts = {kind: [f for f in files if f.content is kind] for kind in DataFileContent}
    whole = parts[DataFileContent.DATA]
    small = [f for f in whole if f.file_size_in_bytes <= ENOUGH]
    rows = sum(f.record_count for f in whole)
    deleted = {kind: min(sum(f.record_count for f in parts[kind]), rows) / rows for kind in parts}

    def penalty(counted: list[DataFile]) -> float:
        if len(counted) <= 1:
            return 0
        size = sum(f.file_size_in_bytes for f in counted)
        return min(len(counted), 12) / 12 * (min(size, ENOUGH) / ENOUGH)

    average = sum(f.file_size_in_bytes for f in small) / len(small) if small else 0
    by_value = min(deleted[DataFileContent.EQUALITY_DELETES], 0.1) / 0.1
    by_position = min(deleted[DataFileContent.POSITION_DELETES], 0.2) / 0.2
    return (
        math.ceil(40 - penalty(small) * 40 * (1 - min(average, ENOUGH) / ENOUGH)),
        math.ceil(40 - penalty(whole) * 40 * by_value),
        math.ceil(20 - penalty(whole) * 20 * by_position),
    )


@pytest.mark.seeds(8)
def test_a_table_has_amoro_s_score(tmp_path: Path, seed: int) -> None:
    pick = random.Random(seed)
    table = new_table(tmp_path, by_day=True)
    days = "abcd"[: pick.randint(1, 4)]
    files = [
        data(pick.choice([MB, 40 * MB, ENOUGH, ENOUGH + 1, GB]), pick.randint(1, 1000), day)
        for day in days
        for _ in range(pick.randint(1, 20))
    ]
    deletes = [
        make(pick.randint(1, 400), day=pick.choice(days))
        for make in (positions, equality)
        for _ in range(pick.randint(0, 4))
    ]
    append(table, *files)
    if deletes:
        delete(table, *deletes)
    assert table.maintenance.health().score == amoro([*files, *deletes])


def test_one_file_or_none_is_well(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), data(1))
    assert table.maintenance.health().score == HealthScore(40, 40, 20)


def test_a_small_target_size_is_not_held_against_a_table(tmp_path: Path) -> None:
    properties = {"write.target-file-size-bytes": str(4 * MB)}
    table = append(new_table(tmp_path, **properties), *(data(3 * MB) for _ in range(50)))
    assert table.maintenance.health().score == HealthScore(40, 40, 20)
    other = append(new_table(tmp_path, "other"), *(data(3 * MB) for _ in range(50)))
    # 50 files of 150 MiB weigh fully, and have 3/96 of the size
    score = other.maintenance.health().score
    assert score == HealthScore(math.ceil(40 * 3 / 96), 40, 20)


def test_equality_deletes_without_a_partition_count_for_all(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), *(data(GB, 100) for _ in range(12)))
    with table.update_spec() as spec:
        spec.add_identity("day")
    append(table, *(data(GB, 100, "mon") for _ in range(12)))
    delete(table, equality(120))
    # of the first partition a tenth, which costs all points; of 2,400 rows a twentieth
    score = table.maintenance.health().score
    assert score == HealthScore(40, math.ceil((0 + 20) / 2), 20)


def test_a_hundred_is_the_best_and_nothing_the_worst(tmp_path: Path) -> None:
    assert HealthScore().total == 100
    table = append(new_table(tmp_path), *(data(MB, 10) for _ in range(960)))
    delete(table, equality(9600), positions(9600))
    score = table.maintenance.health().score
    assert score is not None
    assert (score.equality_deletes, score.position_deletes) == (0, 0)
    assert score.file_sizes == math.ceil(40 / 96)
