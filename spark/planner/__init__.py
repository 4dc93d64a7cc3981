"""The planner: a child process of the Spark driver that answers the bridge's requests.

`python -m icecomb.spark.planner` listens on a loopback port, announces it in one line on standard
output and ends with its standard input. Requests and answers are JSON lines, defined in
`protocol`. Every decision about tables is made here, none in the JVM.

The planner holds nothing that it cannot rebuild from a request: a planner that died is restarted
and Spark does not notice. Hence `Reference` (a table at a certain metadata file) and `WriteState`
(what a commit needs) travel with the requests, and the state of a catalog is only a cache.
"""
