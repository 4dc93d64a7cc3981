"""Who acts."""

from __future__ import annotations

import getpass
import os


def current_user() -> str:
    """The name this process acts under, as Hadoop would tell it."""
    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
