"""A process of its own that is handed pickled things; it knows nothing else of the tests."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

WORKER = """
import pickle, sys
given = pickle.load(sys.stdin.buffer)
pickle.dump(given["ask"](*given["of"]), sys.stdout.buffer)
"""


def elsewhere(ask: Any, *of: Any) -> Any:
    """What a function of a library answers in another process."""
    given = pickle.dumps({"ask": ask, "of": of})
    done = subprocess.run(
        [sys.executable, "-c", WORKER], input=given, stdout=subprocess.PIPE, check=True
    )
    return pickle.loads(done.stdout)  # noqa: S301 - what our own process wrote
