# The public names: what type checkers read, and where `lazy_names` loads each from.

from icecomb.spark.application import (
    configure as configure,
    session as session,
)
from icecomb.spark.conf import spark_conf as spark_conf
