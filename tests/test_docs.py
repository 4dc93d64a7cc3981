"""What the pages in docs show works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
FOLDER = "/tmp/lake"  # noqa: S108 - the name in the pages, replaced by a folder of the test


def blocks(page: str, language: str) -> list[str]:
    """The examples of a page, in order."""
    text = (DOCS / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_python_page_runs_from_its_first_block_to_its_last(tmp_path: Path) -> None:
    found = blocks("python.md", "python")
    assert len(found) >= 9
    names: dict[str, object] = {}
    for block in found:
        exec(compile(block.replace(FOLDER, str(tmp_path)), "python.md", "exec"), names)  # noqa: S102


@pytest.mark.jvm
def test_the_statements_of_the_spark_page_run_from_the_first_to_the_last(spark, catalog) -> None:
    statements = [s for block in blocks("spark.md", "sql") for s in block.split(";") if s.strip()]
    assert len(statements) >= 25
    namespace = "docs_shop"
    results = [spark.sql(s.replace("lake.shop", f"lake.{namespace}")).collect() for s in statements]
    assert results[-1] == [(3,)]
    orders = catalog.load_table((namespace, "orders"))
    rows = orders.scan(selected_fields=("id", "country", "price")).to_arrow().sort_by("id")
    assert [[str(v) for v in row.values()] for row in rows.to_pylist()] == [
        ["1", "de", "21.00"],
        ["3", "de", "8.00"],
        ["10", "it", "2.50"],
    ]
    for table in ("orders", "german_orders"):
        catalog.drop_table((namespace, table))
    catalog.drop_namespace(namespace)


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_a_page_is_short_and_its_links_lead_somewhere(page: str) -> None:
    text = (DOCS / page).read_text()
    assert len(text.splitlines()) <= 200
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (DOCS / target).exists(), target
