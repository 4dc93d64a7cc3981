"""How rows are shared out before they are written, as Iceberg's runtime plans it on the same Spark."""

from __future__ import annotations

import re

import pytest

NAMESPACE = "write_layout_tests"
TABLES = {
    "plain": ("", ""),
    "parts": ("PARTITIONED BY (k)", ""),
    "ordered": ("", "LOCALLY ORDERED BY v DESC NULLS LAST"),
    "both": ("PARTITIONED BY (k)", "LOCALLY ORDERED BY v"),
    "through": ("PARTITIONED BY (k, v)", "LOCALLY ORDERED BY k, id"),
}
STATEMENTS = {
    "insert": "INSERT INTO {t} SELECT id, k, v FROM {t}",
    "delete": "DELETE FROM {t} WHERE id % 2 = 1 AND v < 3",
    "update": "UPDATE {t} SET v = v + 1 WHERE id % 2 = 1",
    "merge": "MERGE INTO {t} t USING (SELECT id FROM range(5)) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = 0 WHEN NOT MATCHED THEN INSERT (id, k, v) VALUES (s.id, 'a', 1)",
}
WRITE = re.compile(r"(AppendData|ReplaceData|WriteDelta)")
PASSED = re.compile(r"(AdaptiveSparkPlan|Project|CommandResult|Execute|Write)")


@pytest.fixture(scope="module")
def peers(peers):
    """With the tables, which are Iceberg's."""
    for name, (partitioning, order) in TABLES.items():
        table = f"ice.{NAMESPACE}.{name}"
        peers["ice"](
            f"CREATE TABLE {table} (id BIGINT, k STRING, v INT) USING iceberg {partitioning}"
        )
        if order:
            peers["ice"](f"ALTER TABLE {table} WRITE {order}")
            peers["ice"](f"ALTER TABLE {table} UNSET TBLPROPERTIES ('write.distribution-mode')")
        peers["ice"](f"INSERT INTO {table} VALUES (1, 'a', 1), (2, 'b', 2)")
    yield peers
    for name in TABLES:
        peers["ice"](f"DROP TABLE ice.{NAMESPACE}.{name}")


def layout(peers, catalog, name, statement):
    """Exchanges and sorts right below the write, without the numbers of columns."""
    text = STATEMENTS[statement].format(t=f"{catalog}.{NAMESPACE}.{name}")
    return shown(peers[catalog], text)


def shown(sql, text):
    [[plan]] = sql(f"EXPLAIN {text}")
    lines = iter(plan.splitlines())
    assert any(WRITE.search(line) for line in lines), plan
    found = []
    for line in lines:
        if re.search(r"\b(Exchange|Sort) ?\[?", line) and "SortMergeJoin" not in line:
            found.append(re.sub(r"#\d+L?|, \[plan_id=\d+\]|^[\s:+\-*()\d]*", "", line))
        elif not PASSED.search(line):
            break
    return found


def properties(mode, command_mode, fanout, delta):
    said = {
        "write.distribution-mode": mode,
        "write.spark.fanout.enabled": fanout,
        **{f"write.{c}.distribution-mode": command_mode for c in ("delete", "update", "merge")},
        **{
            f"write.{c}.mode": "merge-on-read" if delta else "copy-on-write"
            for c in ("delete", "update", "merge")
        },
    }
    return {key: value for key, value in said.items() if value}, [
        k for k, v in said.items() if not v
    ]


@pytest.mark.parametrize("name", TABLES)
def test_rows_are_shared_out_and_sorted_as_icebergs_runtime_does_it(peers, name):
    seen = set()
    for mode, command_mode, fanout, delta in (
        (None, None, None, False),
        (None, None, None, True),
        ("none", None, "false", False),
        ("hash", "none", None, True),
        ("range", "hash", "false", True),
        ("range", "range", None, False),
        (None, "range", None, True),
        ("hash", "hash", "true", False),
    ):
        given, gone = properties(mode, command_mode, fanout, delta)
        table = f"ice.{NAMESPACE}.{name}"
        text = ", ".join(f"'{key}'='{value}'" for key, value in given.items())
        peers["ice"](f"ALTER TABLE {table} SET TBLPROPERTIES ({text})")
        names = ", ".join(f"'{key}'" for key in gone)
        if gone:
            peers["ice"](f"ALTER TABLE {table} UNSET TBLPROPERTIES IF EXISTS ({names})")
        for statement in STATEMENTS:
            expected = layout(peers, "ice", name, statement)
            if not TABLES[name][0]:
                # a struct without fields, which Spark has no column of here
                expected = [re.sub(r"_partition( ASC NULLS FIRST)?, ", "", e) for e in expected]
            # Iceberg's runtime shuffles the paths of files, icecomb what stands for them
            expected = [re.sub(r"\b_file\b", "_icecomb_file", e) for e in expected]
            found = layout(peers, "lake", name, statement)
            assert found == expected, (statement, given)
            seen.update(expected)
    assert len(seen) > 3


def test_a_setting_of_sparks_makes_parts_larger_as_with_icebergs_runtime(peers):
    setting, value = "spark.sql.adaptive.advisoryPartitionSizeInBytes", "900MB"
    found = {}
    for catalog in ("ice", "lake"):
        peers[catalog](f"SET {setting} = {value}")
        try:
            found[catalog] = [
                layout(peers, catalog, name, statement)
                for name in ("parts", "both")
                for statement in STATEMENTS
            ]
        finally:
            peers[catalog](f"RESET {setting}")
    assert found["lake"] == found["ice"]


HERE = ["_spec_id", "_partition", "_icecomb_file", "_pos"]
LAYOUTS = {
    ("both", "copy-on-write"): {
        "insert": ["Sort k, v", "Exchange range k, v"],
        "delete": ["Sort k, v", "Exchange hash k"],
        "merge": ["Sort k, v", "Exchange hash k"],
    },
    ("both", "merge-on-read"): {
        "delete": ["Exchange hash _spec_id, _partition"],
        "merge": [f"Sort {', '.join([*HERE, 'k', 'v'])}", "Exchange hash _spec_id, _partition, k"],
    },
    ("ordered", "copy-on-write"): {
        "delete": ["Sort v DESC NULLS LAST", "Exchange hash _icecomb_file"],
        "merge": ["Sort v DESC NULLS LAST", "Exchange range v DESC NULLS LAST"],
    },
    ("ordered", "merge-on-read"): {
        "delete": ["Exchange hash _spec_id, _icecomb_file"],
        "update": [
            "Sort _spec_id, _icecomb_file, _pos, v DESC NULLS LAST",
            "Exchange hash _spec_id, _icecomb_file",
        ],
    },
}
"""What Iceberg's runtime makes of these, too, as the tests above see where they have it."""


def test_rows_are_shared_out_and_sorted_by_the_newest_spark(spark):
    def sql(text):
        return [list(row) for row in spark.sql(text).collect()]

    namespace = f"lake.{NAMESPACE}_newest"
    sql(f"CREATE NAMESPACE {namespace}")
    for name in ("both", "ordered"):
        partitioning, order = TABLES[name]
        table = f"{namespace}.{name}"
        sql(f"CREATE TABLE {table} (id BIGINT, k STRING, v INT) USING iceberg {partitioning}")
        sql(f"ALTER TABLE {table} WRITE {order}")
        sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('write.distribution-mode')")
        for mode in ("copy-on-write", "merge-on-read"):
            modes = (f"'write.{each}.mode'='{mode}'" for each in ("delete", "update", "merge"))
            sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({', '.join(modes)})")
            for statement, expected in LAYOUTS[name, mode].items():
                found = shown(sql, STATEMENTS[statement].format(t=table))
                assert [in_short(line) for line in found] == expected, (name, mode, statement)
        sql(f"DROP TABLE {table}")
    sql(f"DROP NAMESPACE {namespace}")


def in_short(line):
    """Columns alone; into how many parts of which size is the session's to say."""
    short = re.sub(r"partitioning\(| \[", " ", line.replace(" ASC NULLS FIRST", ""))
    return re.sub(r"(, 2)?\), REBALANCE.*|\], false, 0$", "", short)
