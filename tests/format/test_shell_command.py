"""Commands that are printed to be pasted: each word comes back from a shell, and nothing obeys it."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, strategies as st

from icecomb.format.shell_command import quoted_word, shell_command

HOSTILE = [
    "plain",
    "two words",
    "it's",
    'say "x"',
    "$(reboot)",
    "`id`",
    "a;b|c&d>e",
    "new\nline",
    "tab\there",
    "bell\x07 and \x1b[2J",
    "back\\slash",
    "new\nline's \\ back",
    "\u202egnp.exe",
    "\u00e4\u00f6\U0001f600",
    "*?[a]{b,c}~",
    "!history",
    "new\nline!history",
    "",
]


def words_of(line: str, shell: str = "bash") -> list[str]:
    """What a shell makes of the words of a line."""
    script = 'f() { printf "%s\\0" "$@"; }; f ' + line
    done = subprocess.run([shell, "-c", script], capture_output=True, check=True)
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize("word", HOSTILE)
def test_a_word_comes_back_from_a_shell_and_nothing_obeys_it(word: str) -> None:
    shown = quoted_word(word)
    assert shown.isprintable()
    assert words_of(shown) == [word]


def test_a_line_is_one_command_with_these_words() -> None:
    line = shell_command("maintain", *HOSTILE, options=["--uri", "thrift://a b"])
    assert words_of(line) == ["icecomb", "--uri", "thrift://a b", "maintain", *HOSTILE]


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8))
def test_any_word_comes_back(word: str) -> None:
    assert words_of(quoted_word(word)) == [word]


@pytest.mark.skipif(shutil.which("dash") is None, reason="there is no dash here")
@pytest.mark.parametrize("word", [*HOSTILE, "it's\n$(touch pwned)", "\n'; touch pwned; '"])
def test_a_shell_that_knows_no_such_quotes_runs_nothing(word: str) -> None:
    found = words_of(quoted_word(word), "dash")
    assert len(found) == 1
    assert found == [word] or not word.isprintable()


def test_half_a_surrogate_is_shown() -> None:
    assert quoted_word("\ud800").isascii()
