"""The bridge's half of the protocol: `Protocol.java`, written whenever a jar is compiled.

The messages are read as text, so that it needs neither the planner nor what the planner imports.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_MESSAGES: Final = Path(__file__).resolve().parent / "planner" / "protocol"
_JAVA: Final = {"Any": "JsonNode", "Long": "long", "bool": "boolean", "int": "int", "str": "String"}
_BOXED: Final = {"boolean": "Boolean", "int": "Integer", "long": "Long"}
_PROTOCOL: Final = """\
package org.icecomb.spark.planner;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.List;
import java.util.Map;

public final class Protocol {{

  static final int VERSION = {version};

  private Protocol() {{}}

  public interface Message extends Serializable {{}}

  public interface Reported extends Message {{}}

  public sealed interface Request extends Message permits Repeatable, Unrepeatable {{}}

  public sealed interface Repeatable extends Request {{}}

  public sealed interface Unrepeatable extends Request {{}}

{records}
}}
"""


def protocol_java(messages: Path = _MESSAGES) -> str:
    """Return the source of the class `Protocol`: a record for each message that is not opaque.

    Args:
        messages: The folder of the modules that define the messages.
    """
    modules = {path.stem: path.read_text("utf-8") for path in sorted(messages.glob("*.py"))}
    version = re.findall(r"^PROTOCOL: Final = (\d+)$", modules.pop("message"), re.MULTILINE)
    classes = [
        node
        for text in modules.values()
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef)
    ]
    bases = {node.name: ast.unparse(node.bases[0]) for node in classes}
    records = [_record(node, bases) for node in classes if bases[node.name] != "Opaque"]
    return _PROTOCOL.format(version=version[0], records="\n\n".join(records))


def _record(message: ast.ClassDef, bases: Mapping[str, str]) -> str:
    fields = [node for node in message.body if isinstance(node, ast.AnnAssign)]
    names = [re.sub(r"_(.)", lambda found: found[1].upper(), ast.unparse(f.target)) for f in fields]
    kinds = [_kind(field.annotation, bases) for field in fields]
    members = ", ".join(f"{kind} {name}" for kind, name in zip(kinds, names, strict=True))
    shown = [
        f'"{name}=" + {name}'
        for name, field in zip(names, fields, strict=True)
        if field.value is None or "repr=False" not in ast.unparse(field.value)
    ]
    # a record prints all its members, also those that may be secret
    text = ' + ", " + '.join(shown)
    method = f'\n    public String toString() {{ return "{message.name}[" + {text} + "]"; }}\n  '
    body = method if len(shown) < len(fields) else ""
    return f"  public record {message.name}({members}) implements {bases[message.name]} {{{body}}}"


def _kind(annotation: ast.expr, bases: Mapping[str, str], *, boxed: bool = False) -> str:
    """Return the Java type of a member.

    What only the planner reads, and lists of values or of what tasks have written, are JSON.
    """
    match annotation:
        case ast.Name(name) if name in _JAVA:
            return _BOXED.get(_JAVA[name], _JAVA[name]) if boxed else _JAVA[name]
        case ast.Name(name) if name in bases:
            return "JsonNode" if bases[name] == "Opaque" else name
        case ast.BinOp(given, ast.BitOr(), ast.Constant(None)):
            return _kind(given, bases, boxed=True)
        case ast.Subscript(ast.Name("tuple"), ast.Tuple([ast.Name(name), _])) if (
            name == "Any" or bases.get(name) == "Reported"
        ):
            return "JsonNode"
        case ast.Subscript(ast.Name("tuple"), ast.Tuple([element, _])):
            return f"List<{_kind(element, bases, boxed=True)}>"
        case ast.Subscript(ast.Name("Mapping"), ast.Tuple([_, value])):
            return f"Map<String, {_kind(value, bases, boxed=True)}>"
    raise ValueError(f"{ast.unparse(annotation)} has no Java type")
