"""A server with users: statements in one Spark, each in the name of one of Hadoop's users.

Runs as a program. Its argument is JSON: Spark's configuration, and steps {"user", "real" (the server that acts for
the user, "" for who started Spark, or null), "tokens" (that the user gets before), "sql" (statements)}. It prints one line for each step:
"STEP " and the rows of its last statement or {"error": text}, as JSON. {"sql": statement, "keep": name} in place of a
statement keeps its DataFrame, which is not planned yet; {"collect": name} gives the rows of one, {"view": name} a
global temporary view of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession


def answers(
    conf: Mapping[str, str],
    steps: Iterable[Mapping[str, Any]],
    environment: Mapping[str, str] | None = None,
    python: str = sys.executable,
) -> list[Any]:
    """What a server answers its users, step by step.

    Args:
        conf: Spark's.
        steps: See above.
        environment: What its own has beside ours.
        python: That of Spark's environment.
    """
    steps = list(steps)
    done = subprocess.run(
        [python, __file__, json.dumps([dict(conf), steps])],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        env={**os.environ, **(environment or {})},
    )
    said = [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("STEP ")]
    assert len(said) == len(steps), done.stderr[-4000:]
    return said


class Action:
    """What Hadoop does in somebody's name."""

    class Java:
        implements: ClassVar[list[str]] = ["java.security.PrivilegedExceptionAction"]

    def __init__(
        self,
        spark: SparkSession,
        statements: list[str | dict[str, str]],
        kept: dict[str, DataFrame],
    ) -> None:
        self._spark = spark
        self._statements = statements
        self._kept = kept
        self.answer: Any = None

    def run(self) -> None:
        try:
            for statement in self._statements:
                self.answer = self._answer(statement)
        except Exception as error:  # noqa: BLE001 - it would be one of Java's on its way back
            self.answer = {"error": str(error)}

    def _answer(self, statement: str | dict[str, str]) -> Any:
        if isinstance(statement, str):
            return [list(row) for row in self._spark.sql(statement).collect()]
        if "sql" in statement:
            self._kept[statement["keep"]] = self._spark.sql(statement["sql"])
            return None
        if "view" in statement:
            self._kept[statement["view"]].createGlobalTempView(statement["view"])
            return None
        return [list(row) for row in self._kept[statement["collect"]].collect()]


def main() -> None:
    conf, steps = json.loads(sys.argv[1])
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    ensure_callback_server_started(spark.sparkContext._gateway)
    hadoop = spark.sparkContext._jvm.org.apache.hadoop  # type: ignore[union-attr]
    known: dict[str, Any] = {}
    kept: dict[str, DataFrame] = {}

    def user(name: str | None, real: str | None) -> Any:
        found = hadoop.security.UserGroupInformation
        if name is None:
            return found.getLoginUser()
        key = f"{name} {real}"
        if key not in known:
            known[key] = (
                found.createProxyUser(name, user(real or None, None))
                if real is not None
                else found.createRemoteUser(name)
            )
        return known[key]

    for step in steps:
        who = user(step["user"], step["real"])
        for text in step["tokens"]:
            token = hadoop.security.token.Token()
            token.decodeFromUrlString(text)
            who.addToken(hadoop.io.Text(text), token)
        action = Action(spark, step["sql"], kept)
        who.doAs(action)
        print("STEP", json.dumps(action.answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
