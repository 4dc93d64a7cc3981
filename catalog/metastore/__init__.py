"""A real Hive metastore of one's own: 2.3.10 on Derby, one per warehouse folder, loopback only.

The first `start` on a warehouse launches it, every later one (in any process) finds and shares it,
and it ends by `stop` or when nobody has been connected for a while. See `embedded`.
"""

from icecomb.catalog.metastore.embedded import (
    RunningMetastore,
    default_warehouse,
    start,
    status,
    stop,
)

__all__ = ["RunningMetastore", "default_warehouse", "start", "status", "stop"]
