"""Commands of icecomb that are printed to be pasted: whatever a name says, it stays one word.

Names of tables and files are others' texts. A word is quoted for POSIX sh, bash and zsh; one with
control characters is shown as bash's and zsh's ``$'...'``, in which nothing ends the quotes: where
a shell does not know that form (dash), the word is another one, and still nothing runs.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from typing import Final

PROGRAM: Final = "icecomb"


def shell_command(*words: str, options: Iterable[str] = ()) -> str:
    """Return a command of icecomb as a line for a shell; global options precede the words."""
    return " ".join(map(quoted_word, (PROGRAM, *options, *words)))


def quoted_word(word: str) -> str:
    """Quote a word for a shell; one with control characters as bash's $'...'."""
    if word.isprintable():
        return shlex.quote(word)
    shown = "".join(map(_escaped, word))
    return f"$'{shown}'"


def _escaped(character: str) -> str:
    # an exclamation mark starts history expansion in bash; octal ends the quotes in no shell
    if character.isprintable() and character not in "\\'!":
        return character
    try:
        data = os.fsencode(character)
    except UnicodeEncodeError:  # half a surrogate, which no program can be given
        data = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\{byte:03o}" for byte in data)
