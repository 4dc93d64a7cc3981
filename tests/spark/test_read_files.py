"""What Spark reads of files to answer a query."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.rings import sampled

ROWS = 60_000


@pytest.fixture(scope="module")
def namespace(catalog):
    catalog.create_namespace("read_files")
    return "read_files"


@pytest.fixture
def bytes_read(spark):
    """Runs a query; the bytes that this JVM reads of files meanwhile, and the rows."""
    statistics = spark._jvm.org.apache.hadoop.fs.FileSystem

    def count():
        return sum(each.getBytesRead() for each in statistics.getAllStatistics())

    def run(frame):
        before = count()
        rows = [list(row) for row in frame.collect()]
        return count() - before, rows

    return run


def scanned(frame):
    """The rows of a query without a shuffle, and how many its scan gave Spark to filter."""
    rows = [list(row) for row in frame.collect()]
    scan = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
    return rows, scan.metrics().apply("numOutputRows").value()


def make(catalog, name, rows, file_format):
    properties = {"write.format.default": file_format}
    table = catalog.create_table(name, rows.schema, properties=properties)
    table.append(rows)
    return next(iter(table.scan().plan_files())).file.file_path


def test_a_parquet_file_costs_what_it_costs_spark_alone(catalog, namespace, spark, bytes_read):
    columns = {f"column_{n}": pa.array([n] * 10, pa.int64()) for n in range(300)}
    file = make(catalog, f"{namespace}.wide", pa.table(columns), "parquet")
    ours = spark.sql(f"SELECT sum(column_7) FROM lake.{namespace}.wide")
    alone = spark.read.parquet(file).selectExpr("sum(column_7)")
    assert bytes_read(ours)[1] == bytes_read(alone)[1] == [[70]]
    assert bytes_read(ours)[0] <= bytes_read(alone)[0]


def test_groups_of_rows_of_an_orc_file_are_left_out(catalog, namespace, spark):
    """Rows keep their positions. ORC puts text beyond U+D7FF in another order than Spark."""
    texts = [f"t{n:06d}" for n in range(ROWS)]
    texts[:2] = ["\U0001f600", "\uff5e"]
    rows = pa.table({"id": pa.array(range(ROWS), pa.int64()), "s": texts})
    make(catalog, f"{namespace}.orc", rows, "orc")
    select = f"SELECT id, s, _pos FROM lake.{namespace}.orc WHERE "
    wanted = [[45678, texts[45678], 45678]]
    assert scanned(spark.sql(f"{select} abs(id) = 45678")) == (wanted, ROWS)
    for where in (
        "id = 45678",
        f"s = '{texts[45678]}'",
        "id > 45677 AND id < 45679",
        "id IN (45678, -1)",
    ):
        found, some = scanned(spark.sql(select + where))
        assert found == wanted, where
        assert some < ROWS / 2, where
    for n in (0, 1):
        assert scanned(spark.sql(f"{select} s = '{texts[n]}'"))[0] == [[n, texts[n], n]]
    not_there = spark.sql(f"{select} id IS NULL OR id < 0 OR NOT id >= 0 OR s < 't' OR id <=> NULL")
    assert scanned(not_there)[0] == []


FLOATING = (
    "d = 0",
    "d IN (0, 9)",
    "d >= 0 AND d <= 0",
    "NOT d <> 0",
    "d <=> 0",
    "d > 2",
    "d >= 2",
    "NOT d <= 2",
    "d <> 1.5",
    "NOT d IN (1.5)",
    "d = double('NaN')",
    "d IN (double('NaN'), 9)",
    "d <= double('NaN')",
    "d < 0",
)


@pytest.mark.parametrize("kind", sampled(["float", "double"], keep=1))
def test_zeros_are_one_and_nan_is_the_greatest_in_every_file(catalog, namespace, spark, kind):
    """Parquet orders -0.0 before 0.0, and the bounds of most writers pass over NaN."""
    arrow = pa.float64() if kind == "double" else pa.float32()
    for number, values in enumerate(
        ([-0.0], [0.0, None], [1.5, float("nan")], [float("nan"), -1.0, -0.0])
    ):
        name = f"{namespace}.{kind}_{number}"
        rows = pa.table(
            {"id": pa.array(range(len(values)), pa.int32()), "d": pa.array(values, arrow)}
        )
        # only the file itself has bounds
        table = catalog.create_table(
            name, rows.schema, properties={"write.metadata.metrics.default": "none"}
        )
        table.append(rows)
        literals = ("NULL" if each is None else f"{kind}('{each}')" for each in values)
        listed = ", ".join(f"({place}, {each})" for place, each in enumerate(literals))
        conditions = [
            each.replace("double(", f"{kind}(").replace("1.5", f"{kind}(1.5)") for each in FLOATING
        ]

        def answers(source, conditions=conditions):
            """Every condition for itself: each scan is told its own."""
            each = (
                f"SELECT {number} AS n, id FROM {source} WHERE {where}"
                for number, where in enumerate(conditions)
            )
            rows = spark.sql(" UNION ALL ".join(each)).collect()
            return sorted((conditions[row.n], row.id) for row in rows)

        assert answers(f"lake.{name}") == answers(f"(VALUES {listed}) AS t(id, d)"), values


@pytest.mark.parametrize("minor", ["4.3", "3.5"])
def test_files_that_a_condition_does_not_name_are_not_opened(catalog, namespace, sql_on, minor):
    """All others are away."""
    place = (namespace, f"named_{minor.replace('.', '_')}")
    table = catalog.create_table(place, pa.schema([("id", pa.int64())]))
    with table.transaction() as change:
        for number in range(14):
            change.append(pa.table({"id": pa.array([number], pa.int64())}))
    tasks = [task.file.file_path for task in table.scan().plan_files()]
    paths = {pq.read_table(strip(path))["id"].to_pylist()[0]: path for path in tasks}
    for number in (12, 13):
        Path(strip(paths[number])).rename(strip(paths[number]) + ".away")

    def ids(where):
        query = f"SELECT id FROM lake.{'.'.join(place)} AS t WHERE {where} ORDER BY id"
        return [row[0] for row in sql_on(minor)(query)]

    quoted = [f"'{paths[number]}'" for number in range(12)]
    assert ids(f"_file = {quoted[3]}") == [3]
    assert ids(f"{quoted[3]} = t._FILE AND id < 4") == [3]
    assert ids(f"_file IN ({quoted[3]}, {quoted[5]}, 'nowhere') AND _file <> {quoted[3]}") == [5]
    assert ids(f"_file IN ({', '.join(quoted)})") == list(range(12))
    assert ids(f"_file IN ({quoted[1]}, {quoted[2]}) AND _file IN ({quoted[2]}, {quoted[4]})") == [
        2
    ]
    assert ids("_file = 'nowhere'") == []
    count = f"SELECT count(*), max(id) FROM lake.{'.'.join(place)} WHERE _file = {quoted[7]}"
    assert sql_on(minor)(count) == [[1, 7]]
    Path(strip(paths[12]) + ".away").rename(strip(paths[12]))
    Path(strip(paths[13]) + ".away").rename(strip(paths[13]))
    # of a condition that leaves others, too, no file is left out
    assert ids(f"_file = {quoted[3]} OR id = 13") == [3, 13]
    assert ids(f"NOT _file IN ({', '.join(quoted)})") == [12, 13]
    assert ids(f"_file > {quoted[0]} OR _file <= {quoted[0]}") == list(range(14))
    catalog.drop_table(place)


def test_a_column_that_is_called_like_the_file_of_a_row_is_what_is_meant(catalog, namespace, spark):
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "_File": ["a", "b"]})
    make(catalog, f"{namespace}.own_file", rows, "parquet")
    query = f"SELECT id FROM lake.{namespace}.own_file WHERE _file = 'b'"
    assert [row["id"] for row in spark.sql(query).collect()] == [2]


def strip(path):
    return path.removeprefix("file:")
