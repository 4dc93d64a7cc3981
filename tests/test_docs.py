"""What the pages in docs show works as it stands there."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from icecomb.catalog.cli.application import BLOCKED, OK, icecomb, run
from tests import property_table

README = Path(__file__).resolve().parent.parent / "README.md"
DOCS = Path(__file__).resolve().parent.parent / "docs"
FOLDER = "/tmp/lake"  # noqa: S108 - the name in the pages, replaced by a folder of the test


def blocks(page: str, language: str) -> list[str]:
    """The examples of a page, in order."""
    text = (DOCS / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a block, each with the comment above it."""
    comment = ""
    for line in block.splitlines():
        if line.startswith("#"):
            comment = line
        else:
            yield comment, line
            comment = ""


def test_the_python_page_runs_from_its_first_block_to_its_last(tmp_path: Path) -> None:
    found = blocks("python.md", "python")
    assert len(found) >= 9
    names: dict[str, object] = {}
    for block in found:
        exec(compile(block.replace(FOLDER, str(tmp_path)), "python.md", "exec"), names)  # noqa: S102


@pytest.mark.parametrize(
    ("page", "least"),
    [
        *(("maintenance.md", 7), ("deletes.md", 2), ("health.md", 2), ("format-version-3.md", 4)),
        ("moving.md", 3),
        pytest.param(
            *("command-line.md", 9), marks=pytest.mark.gate("its shell starts icecomb three times")
        ),
    ],
)
def test_the_pages_of_commands_run_from_their_first_block_to_their_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, least: int
) -> None:
    monkeypatch.setenv("ICECOMB_TRACE", "1")
    text = (DOCS / page).read_text().replace(FOLDER, str(tmp_path))
    found = re.findall(r"^```(python|sh|bash)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(found) >= least
    names: dict[str, Any] = {}
    for language, block in found:
        if language == "python":
            exec(compile(block, page, "exec"), names)  # noqa: S102
            continue
        if language == "bash":
            in_bash(block, tmp_path)
            continue
        for comment, command in commands(block):
            line = command
            if "$FIRST" in line:
                line = line.replace("$FIRST", str(names["table"].snapshots()[0].snapshot_id))
            code = BLOCKED if "exit code 3" in comment else OK
            assert run(shlex.split(line)[1:]) == code, line


@pytest.mark.gate("starts an S3")
def test_the_page_of_object_stores_runs_on_an_s3(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.peers.s3 import KEY, SECRET

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    bucket = s3.bucket()
    names: dict[str, object] = {}
    for block in blocks("object-stores.md", "python"):
        here = block.replace("my-lake", bucket).replace("http://127.0.0.1:9000", s3.endpoint)
        exec(compile(here, "object-stores.md", "exec"), names)  # noqa: S102
    assert capsys.readouterr().out.splitlines()[0] == "[{'id': 2, 'what': 'milk'}]"
    monkeypatch.setenv("ICECOMB_HOME", str(tmp_path))
    (tmp_path / "icecomb.yaml").write_text(
        f"catalog:\n  lake:\n    type: hadoop\n    warehouse: s3://{bucket}/warehouse\n"
        f"    s3.endpoint: {s3.endpoint}\n"
    )
    (block,) = blocks("object-stores.md", "sh")
    assert run(shlex.split(block)[1:]) == OK


def in_bash(block: str, folder: Path) -> None:
    """Run a block as a shell does, with `icecomb` on its path."""
    command = folder / "bin" / "icecomb"
    command.parent.mkdir()
    main = "import sys; from icecomb.catalog.cli import main; sys.exit(main())"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{main}" "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}:{os.environ['PATH']}"
    program = ["bash", "-e", "-o", "pipefail", "-c", block]
    subprocess.run(program, env={**os.environ, "PATH": path}, check=True, cwd="/", timeout=300)


@pytest.mark.parametrize("owner", property_table.TABLES)
def test_the_page_lists_every_property_as_the_code_knows_it(owner: str) -> None:
    hint = "run python -m tests.property_table --write"
    assert property_table.in_page(owner) == property_table.table(owner), hint


_WITHOUT = """
import importlib.abc, json, re, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"duckdb", "pandas"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from icecomb.format import MissingDependencyError
names, told = {}, []
for block in json.load(sys.stdin):
    try:
        exec(compile(block, "python.md", "exec"), names)
        told.append(None)
    except MissingDependencyError as error:
        told.append(error.hint)
print(json.dumps(told), file=sys.stderr)
"""
"""Runs blocks where neither DuckDB nor pandas can be imported; which said what to install?"""


def test_the_python_page_runs_without_extras_but_for_the_blocks_that_name_one(
    tmp_path: Path,
) -> None:
    text = (DOCS / "python.md").read_text().replace(FOLDER, str(tmp_path))
    parts = re.split(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    before = [part.rstrip().rpartition("\n\n")[2] for part in parts[0:-1:2]]
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", _WITHOUT],
        input=json.dumps(parts[1::2]),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stderr.splitlines()[-1])
    assert len(told) == len(before)
    assert any(told)
    for paragraph, hint in zip(before, told, strict=True):
        if hint is None:
            assert "pip install" not in paragraph
        else:
            command = hint.removeprefix("Install it: ").replace("'pandas'", "pandas")
            assert command in paragraph


def _lines_with_a_dry_run() -> Iterator[tuple[str, str, str]]:
    """Page, command line and comment of each line whose command asks for --yes."""
    for page in (README, *sorted(DOCS.glob("*.md"))):
        for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            for comment, command in commands(block):
                if not command.startswith("icecomb "):
                    continue
                if any("--yes" in parameter.opts for parameter in _parameters(command)):
                    yield page.name, command, comment


@pytest.mark.parametrize(
    "page",
    [README, README.with_name("CONTRIBUTING.md"), *sorted(DOCS.glob("*.md"))],
    ids=lambda page: page.name,
)
def test_commands_can_be_pasted_into_shells_that_know_no_comments(page: Path) -> None:
    for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            # zsh at a terminal takes what follows a # for arguments, and what follows a ; for a command
            comment = line.startswith("#")
            found = re.search(r"""[;&|<>()\[\]{}*?!$`'"~]""" if comment else r"\s#", line)
            assert found is None, line


def _parameters(command: str) -> list[click.Parameter]:
    found: click.Command = icecomb
    for word in shlex.split(command)[1:]:
        if isinstance(found, click.Group):
            found = found.get_command(click.Context(found), word) or found
    return found.params


def test_the_pages_say_of_each_dry_run_that_it_is_one() -> None:
    found = list(_lines_with_a_dry_run())
    assert {page for page, *_ in found} == {
        "README.md",
        "command-line.md",
        "maintenance.md",
        "migration.md",
        "moving.md",
        "paimon.md",
    }
    for page, command, comment in found:
        dry = "--yes" not in command.split()
        assert not dry or "--yes" in comment or "would" in comment, (page, command)
        assert dry or "would" not in comment, (page, command)


def test_the_streaming_page_runs_from_its_first_block_to_its_last(spark, catalog, tmp_path) -> None:
    import pyarrow as pa

    namespace = "docs_streaming"
    catalog.create_namespace(namespace)
    orders = catalog.create_table((namespace, "orders"), pa.schema([("price", pa.int64())]))
    orders.append(pa.table({"price": [5, 15]}))
    catalog.create_table(
        (namespace, "prices"), pa.schema([("price", pa.int64()), ("seen", pa.int32())])
    )
    names: dict[str, object] = {"spark": spark}
    for block in blocks("streaming.md", "python"):
        here = block.replace(FOLDER, str(tmp_path)).replace("lake.shop", f"lake.{namespace}")
        exec(compile(here, "streaming.md", "exec"), names)  # noqa: S102
    # its driver dies after the MERGE: the batch is run again
    for done in (tmp_path / "merged" / "commits").iterdir():
        done.unlink()
    exec(compile(here, "streaming.md", "exec"), names)  # noqa: S102
    merged = spark.sql(f"SELECT * FROM lake.{namespace}.prices ORDER BY price").collect()
    assert [tuple(row) for row in merged] == [(5, 1), (15, 1)]
    rows = spark.read.parquet(str(tmp_path / "expensive")).collect()
    assert [tuple(row) for row in rows] == [(15,)]
    assert names["limited"].isStreaming  # type: ignore[attr-defined]
    for name in ("orders", "copies", "prices"):
        catalog.drop_table((namespace, name))
    catalog.drop_namespace(namespace)


@pytest.mark.slow("runs all statements of the Spark pages")
def test_the_statements_of_the_spark_pages_run_from_the_first_to_the_last(spark, catalog) -> None:
    found = [*blocks("spark.md", "sql"), *blocks("planning.md", "sql")]
    statements = [s for block in found for s in block.split(";") if s.strip()]
    assert len(statements) >= 25
    namespace = "docs_shop"
    results = [spark.sql(s.replace("lake.shop", f"lake.{namespace}")).collect() for s in statements]
    pairs = zip(statements, results, strict=True)
    assert [r for s, r in pairs if s.strip().endswith("orders.branch_main")] == [[(3,)]]
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
    # tables that are written by a program are looked up, not read
    prose = re.sub(r"<!-- properties of .*?<!-- end -->", "", text, flags=re.DOTALL)
    # what a command does stands in a line of its own above it
    assert sum(not line.startswith("# ") for line in prose.splitlines()) <= 200
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (DOCS / target).exists(), target
