"""What users import: the names, their signatures, and what a type checker knows of them."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import icecomb.format
from tests import public_api

ROOT = Path(__file__).resolve().parent.parent
USERS_CODE = ROOT / "tests" / "typing" / "users_code.py"


def test_public_names_and_signatures_change_on_purpose_only() -> None:
    agreed = public_api.LIST.read_text().splitlines()
    found = public_api.listing().splitlines()
    gone = [line for line in agreed if line not in found]
    new = [line for line in found if line not in agreed]
    hint = "meant so? then run python -m tests.public_api --write"
    assert (gone, new) == ([], []), hint


def test_a_public_name_says_what_it_is_and_names_all_its_arguments_or_none() -> None:
    silent, partial = [], []
    for name, found in public_api.documented():
        text = inspect.getdoc(found) or ""
        if not text:
            silent.append(name)
        documented = set(re.findall(r"^    \**(\w+):", text, re.MULTILINE))
        if "\nArgs:\n" in text and callable(found) and not inspect.isclass(found):
            arguments = set(inspect.signature(found).parameters) - {"self", "cls"}
            partial += [f"{name}: {each}" for each in sorted(arguments - documented)]
    assert (silent, partial) == ([], [])


def test_mypy_finds_the_mistakes_in_a_users_file_and_no_others() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", str(USERS_CODE)]
    found = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert found.returncode == 0, found.stdout


@pytest.mark.gate("starts pyright, which keeps nothing of what it has read")
def test_pyright_finds_the_mistakes_in_a_users_file_and_no_others(tmp_path: Path) -> None:
    # it is told of the environment alone, as an editor is
    project = tmp_path / "pyrightconfig.json"
    settings = {
        "include": [str(USERS_CODE.parent)],
        "typeCheckingMode": "standard",
        "enableTypeIgnoreComments": True,
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    project.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable]
    command += ["--project", str(project)]
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def test_the_earlier_names_of_errors_catch_the_same_errors() -> None:
    assert icecomb.format.FileMissingError is icecomb.format.NoSuchFileError
    assert icecomb.format.FileExistsAlreadyError is icecomb.format.FileAlreadyExistsError
