"""One setting: its value and where it came from; secrets are not shown."""

from __future__ import annotations

from dataclasses import dataclass, field

from icecomb.format.property import ShownProperties


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and where it came from.

    Attributes:
        value: Hidden in the repr, for it may be a secret.
        source: ``argument``, the name of an environment variable, or ``path:line`` of a file.
    """

    value: str = field(repr=False)
    source: str


class Properties(ShownProperties):
    """Properties by key, whose repr hides secrets."""

    def below(self, prefix: str) -> dict[str, str]:
        """Those whose keys begin so, without that beginning."""
        found = self.items()
        return {key[len(prefix) :]: value for key, value in found if key.startswith(prefix)}
