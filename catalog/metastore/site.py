"""The embedded metastore's own configuration files."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from icecomb.catalog.configuration.warehouse import OBJECT_STORES

_FOLDERS: Final = "icecomb.ObjectStoreFolders"
_LOG4J: Final = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} %p %c{1}: %m%n%ex{8}
# It warns about every table of every request that has no partition columns.
logger.datanucleus.name = DataNucleus
logger.datanucleus.level = error
"""


def write_configuration(folder: Path, warehouse: str, derby: Path) -> Path:
    """Write ``folder/conf`` and return it, to be put first in a Java class path.

    Args:
        warehouse: The root of databases without a location of their own, with its scheme.
    """
    properties = {
        "hive.metastore.warehouse.dir": warehouse.replace("file:///", "file:/"),
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={derby};create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        # Without a pool every pass of the lock reaper leaks a connection with an open transaction.
        "datanucleus.connectionPoolingType": "HikariCP",
        # A lock call needs two; ten concurrent callers exhausted the default of ten, for 30 s.
        "datanucleus.connectionPool.maxPoolSize": "40",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.async.log.enabled": "false",
        # Iceberg columns move and widen; the metastore's mirror of them must not prevent that.
        "hive.metastore.disallow.incompatible.col.type.changes": "false",
        "hive.txn.timeout": "300s",
        "hive.timedout.txn.reaper.interval": "2s",
        # The default is ten attempts two seconds apart, during which a client only waits.
        "hive.hmshandler.retry.attempts": "2",
        "hive.hmshandler.retry.interval": "200ms",
        **{f"fs.{scheme}.impl": _FOLDERS for scheme in OBJECT_STORES},
    }
    conf = folder / "conf"
    conf.mkdir(exist_ok=True)
    lines = [
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in properties.items()
    ]
    text = '<?xml version="1.0"?>\n<configuration>\n' + "\n".join(lines) + "\n</configuration>\n"
    (conf / "hive-site.xml").write_text(text)
    (conf / "log4j2.properties").write_text(_LOG4J)
    return conf
