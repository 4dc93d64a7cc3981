"""Decimals and their unscaled values, exact whatever the thread's decimal context is."""

from __future__ import annotations

from decimal import Decimal


def unscaled(value: Decimal) -> int:
    """Return the digits of a decimal as a signed integer, without the point."""
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits)))
    return -number if sign else number


def scaled(number: int, scale: int) -> Decimal:
    """Return the decimal of an unscaled value and a scale."""
    digits = tuple(map(int, str(abs(number))))
    return Decimal((int(number < 0), digits, -scale))


def rescaled(value: Decimal, scale: int) -> Decimal:
    """Return the same number with ``scale`` digits after the point.

    ValueError is raised if it has more digits, TypeError if it is not finite.
    """
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise TypeError("it is not a finite number")
    if -exponent == scale:
        return value
    number, shift = unscaled(value), exponent + scale
    if shift >= 0:
        return scaled(number * 10**shift, scale)
    quotient, rest = divmod(abs(number), 10**-shift)
    if rest:
        raise ValueError(f"it has more than {scale} digits after the point")
    return scaled(-quotient if number < 0 else quotient, scale)


def decimal_bytes(value: Decimal) -> bytes:
    """Return a decimal's unscaled value as two's complement: big-endian, in the fewest bytes."""
    number = unscaled(value)
    # ~number: one byte holds -128, though its absolute value needs eight bits and a sign.
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)
