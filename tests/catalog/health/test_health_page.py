"""The page of `icecomb health --html`: whole and harmless."""

from __future__ import annotations

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from icecomb.catalog import cli
from icecomb.catalog.cli.report import health_page
from icecomb.catalog.health.table_health import HealthFinding, TableFacts, TableHealth
from icecomb.catalog.report.finding import Severity
from icecomb.format.errors import FileIOError
from tests.catalog.health.made_table import GB, KB, MB, append, data, new_table
from tests.peers.other_user import SOMEBODY, give_away

HIT = "document.title='hit'"
HOSTILE = [
    f"<script>{HIT}</script>",
    f'"><img src=x onerror="{HIT}">',
    f"'onmouseover='{HIT}",
    f"</title><script>{HIT}</script>",
    f"]]><svg onload={HIT}>",
    "{{ 7 * 7 }}{% raise %}",
    "&lt;b&gt; &amp; &#60;",
    "new\nline and \x00 nul, \x1b[31m red, \u202eright to left",
    "half \ud800 of a character",
    "x" * 10_000,
    "javascript:alert(1)",
]
FACTS = TableFacts(2, 7, 3 * GB, 10, 0, 0, 0, 0, 2, 1, 100, 3, 12 * KB, 70, 1_700_000_000_000)


def ill(name: str) -> TableHealth:
    """A table with the name everywhere that other people's text may stand."""
    found = HealthFinding(
        "small-files", Severity.WARNING, f"message {name}", {"n": 1}, ("maintain", "x", name)
    )
    return TableHealth(name, (found,), FACTS)


def written(folder: Path, tables: list[TableHealth]) -> Path:
    page = folder / "health.html"
    health_page.write(str(page), tables, ["--uri", "thrift://x"])
    return page


class Strict(HTMLParser):
    """Reads a page that closes what it opens, and notes all it has."""

    VOID = frozenset(("meta", "br"))

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), (tag, names)
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def parsed(text: str) -> Strict:
    found = Strict()
    found.feed(text)
    found.close()
    assert found.open == []
    return found


ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "table"),
    *("thead", "tbody", "tr", "th", "td", "a", "section", "ul", "li", "b", "br", "code"),
}


def check_harmless(page: Strict) -> None:
    """No element or attribute that loads or runs anything, or leads elsewhere."""
    assert {tag for tag, _ in page.tags} <= ALLOWED
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in {"src", "srcset", "action", "data", "formaction"}, (tag, name)
            if name == "href":
                assert re.fullmatch(r"#t\d+", value or "")


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_a_table_is_called_is_text(tmp_path: Path, name: str) -> None:
    page = written(tmp_path, [ill(name), TableHealth("t", error=f"no {name}", hint=f"try {name}")])
    text = page.read_text("utf-8")
    found = parsed(text)
    check_harmless(found)
    plain = parsed(
        written(tmp_path, [ill("t"), TableHealth("t", error="no", hint="try")]).read_text()
    )
    tags = [tag for tag, _ in plain.tags]
    if "\ud800" in name:
        tags.remove("code")  # no shell can hand over such a name
    assert [tag for tag, _ in found.tags] == tags
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text)
    assert len(text) < 60_000 + 12 * len(name)


def test_the_page_forbids_itself_to_load_or_run_anything(tmp_path: Path) -> None:
    text = written(tmp_path, [ill("t")]).read_text()
    policies = [a for tag, a in parsed(text).tags if tag == "meta" and "http-equiv" in a]
    assert [a["content"] for a in policies] == ["default-src 'none'; style-src 'unsafe-inline'"]
    assert "http:" not in text
    assert "https:" not in text
    assert "url(" not in text
    assert "@import" not in text


def test_a_link_of_its_name_is_replaced_and_not_followed(tmp_path: Path) -> None:
    theirs = tmp_path / "bashrc"
    theirs.write_text("mine")
    (tmp_path / "health.html").symlink_to(theirs)
    page = written(tmp_path, [ill("t")])
    assert theirs.read_text() == "mine"
    assert not page.is_symlink()


def test_a_folder_behind_a_link_of_another_user_gets_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (tmp_path / "reports").symlink_to(theirs)
    give_away(tmp_path / "reports", monkeypatch)
    with pytest.raises(FileIOError, match="is not followed"):
        written(tmp_path / "reports", [ill("t")])
    assert list(theirs.iterdir()) == []


def test_a_page_of_another_user_is_told_before_anything_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "health.html").touch()
    tmp_path.chmod(0o1777)
    command = ["health", str(tmp_path / "t"), "--html", str(tmp_path / "health.html")]
    assert cli.main(command) != 2
    assert "belongs to user" not in capfd.readouterr().err
    monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)
    assert cli.main(command) == 2
    assert "belongs to user" in capfd.readouterr().err


def test_the_page_is_as_open_as_the_umask_says(tmp_path: Path) -> None:
    mask = os.umask(0o077)
    try:
        assert written(tmp_path, [ill("t")]).stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(mask)


def test_commands_stand_as_they_run(tmp_path: Path) -> None:
    found = parsed(written(tmp_path, [ill("it's $(x)")]).read_text())
    line = "icecomb --uri thrift://x maintain x 'it'\"'\"'s $(x)'"
    assert line in "".join(found.texts)


def test_a_page_of_many_tables_shows_the_worst_in_full(tmp_path: Path) -> None:
    page = written(tmp_path, [ill(f"db.t{n}") for n in range(1000)])
    found = parsed(page.read_text())
    assert sum(tag == "section" for tag, _ in found.tags) == 100
    assert sum(tag == "tr" for tag, _ in found.tags) == 1001
    assert "900 more tables" in "".join(found.texts)
    assert page.stat().st_size < 3 * MB


def test_the_command_writes_the_page_and_the_list(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = append(new_table(tmp_path, by_day=True), *(data(MB, day=d) for d in ("a", "<b>")))
    page = tmp_path / "health.html"
    page.write_text("old")
    assert cli.main(["health", table.location(), "--html", str(page), "--output", "json"]) == 0
    out, err = capfd.readouterr()
    assert [one["table"] for one in json.loads(out)] == [table.location()]
    assert str(page) in err
    text = page.read_text()
    check_harmless(parsed(text))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["db", "health.html"]


def test_a_folder_that_is_not_there_is_told_before_anything_is_looked_at(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["health", str(tmp_path / "t"), "--html", str(tmp_path / "no" / "x")]) == 2
    assert "there is no folder" in capfd.readouterr().err
