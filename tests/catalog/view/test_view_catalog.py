"""Catalogs without a metastore keep no views, and say so."""

from __future__ import annotations

from pathlib import Path

from icecomb.catalog import load_catalog


def test_a_catalog_of_folders_keeps_no_views(tmp_path: Path) -> None:
    assert not load_catalog("files", type="hadoop", warehouse=str(tmp_path)).keeps_views
