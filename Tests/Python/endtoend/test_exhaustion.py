"""One client that tries to use up shared resources: no request of a bystander on another connection fails, and
memory is bounded. `python -m support.exhaustion BINARY` prints the same as a table.
"""

from __future__ import annotations

import os

import pytest

from support import exhaustion
from support.exhaustion import ATTACKS

BINARY = os.environ.get("HEARTH_BINARY", "")
pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

RESIDENT_MEGABYTES_MAX = 400
# For a release binary on a machine without other load.
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
