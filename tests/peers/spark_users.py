"""A server with users: statements in one Spark, each in the name of one of Hadoop's users.

Runs as a program. Its argument is JSON: Spark's configuration, and steps {"user", "real" (the server that acts for
the user, or null), "tokens" (that the user gets before), "sql" (statements)}. It prints one line for each step:
"STEP " and the rows of its last statement or {"error": text}, as JSON.
"""

import json
import sys
from typing import Any, ClassVar

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession


class Action:
    """What Hadoop does in somebody's name."""

    class Java:
        implements: ClassVar[list[str]] = ["java.security.PrivilegedExceptionAction"]

    def __init__(self, spark: SparkSession, statements: list[str]) -> None:
        self._spark = spark
        self._statements = statements
        self.answer: Any = None

    def run(self) -> None:
        try:
            for statement in self._statements:
                self.answer = [list(row) for row in self._spark.sql(statement).collect()]
        except Exception as error:  # noqa: BLE001 - it would be one of Java's on its way back
            self.answer = {"error": str(error)}


def main() -> None:
    conf, steps = json.loads(sys.argv[1])
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    ensure_callback_server_started(spark.sparkContext._gateway)
    hadoop = spark.sparkContext._jvm.org.apache.hadoop  # type: ignore[union-attr]
    known: dict[str, Any] = {}

    def user(name: str | None, real: str | None) -> Any:
        found = hadoop.security.UserGroupInformation
        if name is None:
            return found.getLoginUser()
        key = f"{name} {real}"
        if key not in known:
            known[key] = (
                found.createProxyUser(name, user(real, None))
                if real
                else found.createRemoteUser(name)
            )
        return known[key]

    for step in steps:
        who = user(step["user"], step["real"])
        for text in step["tokens"]:
            token = hadoop.security.token.Token()
            token.decodeFromUrlString(text)
            who.addToken(hadoop.io.Text(text), token)
        action = Action(spark, step["sql"])
        who.doAs(action)
        print("STEP", json.dumps(action.answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
