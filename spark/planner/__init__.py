"""The planner: a child process of the Spark driver that answers the bridge's questions.

`python -m icecomb.spark.planner` listens on a loopback port, says so in one line on standard
output and ends with its standard input. Requests and answers are JSON lines, written down in
`protocol`. Every decision about tables is made here, none in the JVM.

The planner holds nothing that it cannot rebuild from a request: a planner that died is started
again and Spark does not notice. Hence `Reference` (which table, in which state) and `WriteState`
(what a commit needs) travel with the requests, and the state of a catalog is only a cache.
"""
