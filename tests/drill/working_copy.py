"""A copy of the checkout whose code is what its tests import."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from tests.drill.mutation import Mutation

_VERSIONS = count(1)
"""Compiled Python is told apart by the length of its source and the second of its last change."""


class WorkingCopy:
    """A copy of all files but those that git ignores, with the environments of the original.

    Args:
        root: Its top. The folder is called ``icecomb``: with the one around it on the path, it is that package, before the editable
            install is asked.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def of(cls, original: Path, folder: Path) -> WorkingCopy:
        """Copy a checkout.

        Args:
            original: The checkout.
            folder: A new folder for the copy.
        """
        root = folder / "icecomb"
        left_out = shutil.ignore_patterns(".git", *_ignored(original))
        shutil.copytree(original, root, symlinks=True, ignore=left_out)
        for environment in original.glob(".venv*"):
            (root / environment.name).symlink_to(environment)
        link = root / "build" / "typing" / "icecomb"
        link.parent.mkdir(parents=True)
        link.symlink_to("../..")
        return cls(root)

    @property
    def environment(self) -> dict[str, str]:
        """Variables for whoever is to import the copy, and for what they start."""
        variables = {**os.environ, "PYTHONPATH": str(self.root.parent)}
        # each mutation is compiled anew, and is a file of its own for that
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        return variables

    @contextmanager
    def mutated(self, mutation: Mutation) -> Iterator[None]:
        """The copy with a mutation in it."""
        path = self.root / mutation.file
        before, at = path.read_text(), path.stat().st_mtime
        path.write_text(mutation.applied(before))
        changed = at + next(_VERSIONS)
        os.utime(path, (changed, changed))
        try:
            yield
        finally:
            path.write_text(before)
            os.utime(path, (at, at))


def _ignored(checkout: Path) -> list[str]:
    """What is made here and not kept: names and patterns of names, as `.gitignore` has them."""
    file = checkout / ".gitignore"
    lines = file.read_text().splitlines() if file.exists() else []
    return [line.rstrip("/") for line in lines if line and not line.startswith("#")]
