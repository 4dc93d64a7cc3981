"""A setting with its value and source; secrets are not shown."""

from __future__ import annotations

from dataclasses import dataclass, field

from icecomb.format.property.property import ShownProperties


@dataclass(frozen=True, slots=True)
class Setting:
    """A value, hidden in the repr as it may be a secret, and its source.

    The source is ``argument``, the name of an environment variable, or ``path:line`` of a file.
    """

    value: str = field(repr=False)
    source: str


class Properties(ShownProperties):
    """Properties by key, whose repr hides secrets."""

    def below(self, prefix: str) -> dict[str, str]:
        """Return the properties whose keys begin with ``prefix``, without the prefix."""
        found = self.items()
        return {key[len(prefix) :]: value for key, value in found if key.startswith(prefix)}
