"""Sizes around the edges of buffers, and bytes that a key determines."""

from __future__ import annotations

import random

_PERIOD = 65_521  # a prime: no two positions of a buffer have the same bytes around them
_PATTERN = random.Random(7).randbytes(_PERIOD) * 2
_LETTERS = bytes(ord("a") + byte % 26 for byte in _PATTERN)

#: Powers of two, multiples of a frame of HTTP/2, and often the output of one flush.
EDGES = sorted([1 << power for power in range(20)] + [number << 14 for number in range(1, 20)] + 12 * [160 << 10])


def _take(source: bytes, key: int, count: int) -> bytes:
    start = key * 7_919 % _PERIOD
    round = source[start : start + _PERIOD]
    return (round * (count // _PERIOD + 1))[:count]


def content(key: int, count: int) -> bytes:
    return _take(_PATTERN, key, count)


def letters(key: int, count: int) -> str:
    return _take(_LETTERS, key, count).decode()


def size(chance: random.Random, at_most: int = 300 << 10) -> int:
    """Within 64 bytes of an edge, or somewhat below it, where heads and frames have taken their part."""
    if chance.random() < 0.1:
        return chance.randrange(2_000)
    near = chance.choice(EDGES) + (chance.randint(-64, 64) if chance.random() < 0.5 else -chance.randrange(700))
    return max(0, min(at_most, near))
