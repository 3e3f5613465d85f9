"""How often, and how sure one can be: a share with its confidence interval."""

from __future__ import annotations

import math

import msgspec

_Z = 1.959963984540054
"""Standard deviations that 95 % of a normal distribution lie within."""


class Rate(msgspec.Struct, frozen=True):
    """`count` of `of`, the share that this is, and the 95 % interval of the true share.

    The share and the interval are from 0 to 1, and `None` where there is nothing to count.
    """

    count: int
    of: int
    share: float | None
    low: float | None
    high: float | None


def rate(count: int, of: int) -> Rate:
    """Return a share with the interval of Wilson (1927), which holds for rare things as well."""
    if not of:
        return Rate(count, of, None, None, None)
    share, squared = count / of, _Z * _Z
    middle = (share + squared / (2 * of)) / (1 + squared / of)
    reach = math.sqrt(share * (1 - share) / of + squared / (4 * of * of))
    reach *= _Z / (1 + squared / of)
    low = 0.0 if not count else max(0.0, middle - reach)
    high = 1.0 if count == of else min(1.0, middle + reach)
    return Rate(count, of, share, low, high)
