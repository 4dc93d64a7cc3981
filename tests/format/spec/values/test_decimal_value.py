from __future__ import annotations

from decimal import Decimal

import pytest

from icecomb.format.spec.values.decimal_value import decimal_bytes

# what BigInteger.toByteArray() gives: buckets of decimals and bounds are made of these bytes
BYTES = {
    "0": "00",
    "1": "01",
    "-1": "ff",
    "127": "7f",
    "128": "0080",
    "-128": "80",
    "-129": "ff7f",
    "255": "00ff",
    "-32768": "8000",
    "32768": "008000",
    "1.28": "0080",
    "-1.28": "80",
}


@pytest.mark.parametrize(("text", "wanted"), BYTES.items())
def test_a_decimal_takes_as_few_bytes_as_hold_its_digits_and_its_sign(text, wanted):
    assert decimal_bytes(Decimal(text)).hex() == wanted
