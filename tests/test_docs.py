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


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_a_page_is_short_and_its_links_lead_somewhere(page: str) -> None:
    text = (DOCS / page).read_text()
    assert len(text.splitlines()) <= 200
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (DOCS / target).exists(), target
