"""Servers of object stores that are built or installed first: a test's own time is limited.

``python -m tests.peers.installed`` gets those that are missing.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.peers import azurite, google_store, versity_gateway


def install() -> None:
    """All of them, side by side; each is kept beside the environment."""
    with ThreadPoolExecutor(2) as pool:
        asked = [
            pool.submit(each)
            for each in (google_store.program, versity_gateway.program, azurite.installed)
        ]
        for each in asked:
            each.result()


if __name__ == "__main__":
    install()
