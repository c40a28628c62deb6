"""One client that tries to use up what all share: a bystander on another connection is refused nothing, and memory has a
bound. `python -m support.exhaustion BINARY` prints the same as a table."""

from __future__ import annotations

import os

import pytest

from support import exhaustion
from support.exhaustion import ATTACKS

BINARY = os.environ.get("HEARTH_BINARY", "")
pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

RESIDENT_MEGABYTES_MAX = 400
# Of a release binary on a machine that has nothing else to do.
WAIT_SECONDS_MAX = 0.25


@pytest.mark.parametrize("attack", list(ATTACKS))
def test_a_bystander_is_served(attack: str) -> None:
    row = exhaustion.run(BINARY, attack)
    print(row)
    assert all(row.waits.values())
    assert attack == "nobody" or row.outcome
    assert row.refused == 0, row
    assert row.megabytes < RESIDENT_MEGABYTES_MAX, row
    if os.environ.get("HEARTH_TEST_STRICT"):
        assert row.longest < WAIT_SECONDS_MAX, row
