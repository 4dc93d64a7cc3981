"""An embedded, real Hive metastore: 2.3.10 on Derby, one per warehouse folder, loopback only.

The first `start` on a warehouse launches it, every later one (in any process) finds and shares it,
and it ends by `stop` or after a time without connections. It serves the owner of the folder, and no
other user of the machine. See `embedded` and `configuration.metastore_folder`.
"""

from icecomb.catalog.configuration.metastore_folder import RunningMetastore, find
from icecomb.catalog.configuration.warehouse import default_warehouse
from icecomb.catalog.metastore.embedded import start, status, stop

__all__ = ["RunningMetastore", "default_warehouse", "find", "start", "status", "stop"]
