"""Only a metastore has Hive tables: every function takes any catalog, and says so of others."""

from __future__ import annotations

import pytest

from icecomb.catalog import load_catalog, migrate
from icecomb.format.errors import UnsupportedError


@pytest.mark.parametrize(
    "step",
    [
        migrate.plan,
        migrate.apply,
        migrate.verify,
        migrate.revert,
        migrate.finalize,
        migrate.status,
    ],
)
def test_a_catalog_without_a_metastore_is_refused(step, tmp_path):
    with load_catalog("files", type="hadoop", warehouse=str(tmp_path)) as files:
        with pytest.raises(UnsupportedError, match=r"'files'.* has no metastore") as caught:
            step(files, "db.t")
        assert "uri=" in caught.value.hint
    assert list(tmp_path.iterdir()) == []
