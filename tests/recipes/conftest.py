"""What recipes are tried on."""

from tests.catalog.migrate.conftest import make_hive_table

__all__ = ["make_hive_table"]
