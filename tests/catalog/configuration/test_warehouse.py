"""Where the files of an embedded metastore are, by the path of its warehouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from icecomb.catalog.configuration.warehouse import default_warehouse, warehouse_folder
from icecomb.format.errors import ConfigurationError
from tests.peers.other_user import give_away


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the metastores whose warehouses others could exchange."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "icecomb" / "warehouses" / "file"


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """A folder that others write to."""
    folder = tmp_path / "team"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def test_a_private_one_has_them_and_one_that_others_could_exchange_has_not(
    tmp_path: Path, data: Path, team: Path
) -> None:
    assert warehouse_folder(tmp_path / "a" / "b", create=True) == tmp_path / "a" / "b"
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "link").symlink_to(team)
    found = warehouse_folder(tmp_path / "link" / "lake", create=True)
    assert found == data / (team / "lake").relative_to("/")
    assert (team / "lake").is_dir()


def test_two_dots_after_a_link_remove_it_in_what_is_checked_and_what_is_used(
    tmp_path: Path, data: Path, team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (team / "inner").mkdir()
    (tmp_path / "link").symlink_to(team / "inner")
    text = f"{tmp_path}/link/../lake"
    assert warehouse_folder(text, create=True) == tmp_path / "lake"
    assert (tmp_path / "lake").is_dir()
    assert not (team / "lake").exists()
    # it is not below the user's data folder, which is believed
    assert warehouse_folder(data.parent / ".." / ".." / ".." / "lake") == tmp_path / "lake"
    monkeypatch.setenv("XDG_DATA_HOME", text)
    assert default_warehouse() == tmp_path / "lake" / "icecomb" / "warehouse"


@pytest.mark.parametrize("name", ["link", "link/lake", "link/lake/inner"])
@pytest.mark.usefixtures("data")
def test_a_link_of_another_user_in_a_folder_of_a_team_is_not_followed(
    tmp_path: Path, team: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (team / "link").symlink_to(mine)
    give_away(team / "link", monkeypatch)
    for create in (False, True):
        with pytest.raises(ConfigurationError, match=r"link of user .* which is not followed"):
            warehouse_folder(team / name, create=create)
    assert not list(mine.iterdir())
