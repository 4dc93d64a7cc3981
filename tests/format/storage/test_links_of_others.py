"""Links that another user made: what creates, deletes, moves or copies files does not follow them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from icecomb.format.errors import FileIOError
from icecomb.format.storage.file_io import FileIO, copy_file
from tests.peers.other_user import give_away


@pytest.fixture
def link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes a link, of another user unless said otherwise."""

    def made(name: str, target: Path | str, *, is_own: bool = False) -> Path:
        found = tmp_path / name
        found.symlink_to(target)
        if not is_own:
            give_away(found, monkeypatch)
        return found

    return made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder that no link should lead to."""
    found = tmp_path / "home"
    found.mkdir()
    (found / "thesis.odt").write_text("precious")
    return found


@pytest.mark.parametrize("spelling", ["{}", "file:{}", "file://{}"])
@pytest.mark.parametrize(
    "change",
    [
        lambda io, at: io.delete([f"{at}/thesis.odt"]),
        lambda io, at: io.delete([f"{at}/thesis.odt", f"{at}/other"]),
        lambda io, at: io.delete([f"{at}/../link/./thesis.odt"]),
        lambda io, at: io.discard([f"{at}/thesis.odt"]),
        lambda io, at: io.rename(f"{at}/thesis.odt", f"{at}2/thesis.odt"),
        lambda io, at: io.rename(f"{at}/../plain", f"{at}/new"),
        lambda io, at: io.rename(f"{at}/../plain", f"{at}/made/new"),
        lambda io, at: io.delete_folder(f"{at}/inner"),
        lambda io, at: io.create(f"{at}/new", b"x"),
        lambda io, at: io.create(f"{at}/made/new", b"x"),
        lambda io, at: io.create_folder(f"{at}/made"),
        lambda io, at: io.create_folder(f"{at}/made/below"),
        lambda io, at: replaced(io, f"{at}/thesis.odt"),
        lambda io, at: copy_file(io, f"{at}/../plain", f"{at}/made/new"),
        lambda io, at: copy_file(io, f"{at}/thesis.odt", f"{at}2/thesis.odt"),
    ],
    ids=[
        "delete",
        "delete two",
        "dots",
        "discard",
        "rename",
        "rename to",
        "rename below",
        "folder",
        "create",
        "create below",
        "create folder",
        "create folder below",
        "replace",
        "copy to",
        "copy",
    ],
)
def test_nothing_is_changed_through_them(
    home: Path,
    link: Callable[..., Path],
    change: Callable[[FileIO, str], object],
    spelling: str,
) -> None:
    (home / "inner").mkdir()
    (home.parent / "plain").write_text("plain")
    place = link("link", home)
    with pytest.raises(FileIOError, match=r"link in .* is a link of user \d+"):
        change(FileIO({}), spelling.format(place))
    assert sorted(path.name for path in home.rglob("*")) == ["inner", "thesis.odt"]
    assert (home / "thesis.odt").read_text() == "precious"
    assert sorted(path.name for path in home.parent.iterdir()) == ["home", "link", "plain"]


def replaced(io: FileIO, location: str) -> None:
    with io.prepare(location, b"x", replace=True) as publish:
        publish()


def test_a_file_that_is_one_is_not_copied(home: Path, link: Callable[..., Path]) -> None:
    place = link("link", home / "thesis.odt")
    with pytest.raises(FileIOError, match=r"link in .* is a link of user \d+"):
        copy_file(FileIO({}), str(place), f"{home}/copy")
    assert not (home / "copy").exists()
    copy_file(FileIO({}), str(link("mine", "./home/thesis.odt", is_own=True)), f"{home}/copy")
    assert (home / "copy").read_text() == "precious"


def test_folders_are_made_behind_an_own_link_and_not_where_one_leads_nowhere(
    home: Path, link: Callable[..., Path]
) -> None:
    place = link("link", home, is_own=True)
    FileIO({}).create(f"{place}/a/b/file", b"x")
    assert (home / "a" / "b" / "file").read_bytes() == b"x"
    with pytest.raises(FileIOError):
        FileIO({}).create(f"{link('away', 'unmounted', is_own=True)}/a/file", b"x")
    assert not (home.parent / "unmounted").exists()


def test_two_dots_remove_a_link_as_where_locations_are_compared(
    home: Path, link: Callable[..., Path], tmp_path: Path
) -> None:
    (home / "inner").mkdir()
    place = f"file:{link('link', home / 'inner', is_own=True)}/../thesis.odt"
    io = FileIO({})
    io.delete([place])
    assert (home / "thesis.odt").exists()
    assert not io.exists(place)
    io.create(place, b"mine")
    assert (tmp_path / "thesis.odt").read_bytes() == io.read(place) == b"mine"
    assert [one.location for one in io.list(place.removesuffix("thesis.odt") + "home")] == [
        place.removesuffix("thesis.odt") + "home/thesis.odt"
    ]
    io.delete([place])
    assert not (tmp_path / "thesis.odt").exists()


def test_own_links_are_followed_absolute_and_relative_ones(
    home: Path, link: Callable[..., Path]
) -> None:
    for name, target in (("one", home), ("two", "home"), ("three", "two/../one")):
        (home / name).write_text("x")
        FileIO({}).delete([f"{link(name, target, is_own=True)}/{name}"])
    FileIO({}).rename(f"{home}/thesis.odt", f"{home.parent}/one/moved")
    assert [path.name for path in home.iterdir()] == ["moved"]


def test_a_link_that_is_the_file_itself_is_deleted_and_what_it_names_stays(
    home: Path, link: Callable[..., Path]
) -> None:
    place = link("link", home / "thesis.odt")
    FileIO({}).delete([str(place)])
    assert not place.is_symlink()
    assert (home / "thesis.odt").exists()


def test_links_in_a_circle_are_an_error(home: Path, link: Callable[..., Path]) -> None:
    link("a", "b", is_own=True)
    place = link("b", "a", is_own=True)
    with pytest.raises(FileIOError, match="symbolic links"):
        FileIO({}).delete([f"{place}/x"])
    assert home.exists()
