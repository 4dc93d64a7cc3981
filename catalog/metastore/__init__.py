"""A real Hive metastore of one's own: 2.3.10 on Derby, one per warehouse folder, loopback only.

The first `start` on a warehouse launches it, every later one (in any process) finds and shares it,
and it ends by `stop` or when nobody has been connected for a while. It serves the owner of the
folder, and nobody else of the machine's users. See `embedded` and `place`.
"""

from icecomb.catalog.metastore.embedded import start, status, stop
from icecomb.catalog.metastore.place import RunningMetastore, find
from icecomb.catalog.metastore.warehouse import default_warehouse

__all__ = ["RunningMetastore", "default_warehouse", "find", "start", "status", "stop"]
