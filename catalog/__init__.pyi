# The public names: what type checkers read, and where `lazy_names` loads each from.

from icecomb.catalog.catalog import Catalog as Catalog
from icecomb.catalog.commit.commit_status import CommitStatus as CommitStatus
from icecomb.catalog.loading import (
    load_catalog as load_catalog,
    open_table as open_table,
)
from icecomb.catalog.maintenance import Maintenance as Maintenance
from icecomb.catalog.migrate.applying.migration import (
    MigrationBlockedError as MigrationBlockedError,
)
from icecomb.catalog.migrate.reverting.reversal import RevertBlockedError as RevertBlockedError
from icecomb.catalog.paimon.table_import import ImportBlockedError as ImportBlockedError
from icecomb.catalog.table.merge import Merge as Merge
from icecomb.catalog.table.table import Table as Table
from icecomb.catalog.table.transaction import Transaction as Transaction
from icecomb.catalog.view.view import View as View
