"""Tests the comparison: equal servers have no difference, and every planted fault is found.

Both servers are Google's emulator. Their answers are recorded once; then a fault changes one answer of one server, and
the recording is compared again.
"""

from __future__ import annotations

import pytest

from differential.episodes import Episode
from differential.request import Request
from differential.runner import Exchange, Judge, Outcome, Pair
from differential.tests.faults import FAULTS, HARMLESS, LOOK_ALIKES, Fault
from support.servers import Unavailable, emulator

SEED = 20_241
EPISODES = 28


@pytest.fixture(scope="module")
def recording() -> list[list[Exchange]]:
    """The exchanges of some episodes, which must have no difference."""
    recorded = []
    try:
        with emulator() as judged, emulator() as reference:
            pair = Pair(judged, reference)
            for number in range(EPISODES):
                seen: list[Exchange] = []
                outcome = pair.run(Episode(SEED, number, "both", "faults").draw(), seen)
                assert [found.signature for found in outcome.differences] == []
                assert not outcome.explained
                recorded.append(seen)
            pair.close()
    except Unavailable as reason:
        pytest.skip(str(reason))
    return recorded


def replay(exchanges: list[Exchange], fault: Fault) -> tuple[Request | None, Outcome]:
    """Compares an episode again with a fault in the first answer that the fault applies to."""
    judge = Judge()
    altered: Request | None = None
    for request, sent, (hearth, reference) in exchanges:
        if altered is None:
            faulty = fault(hearth)
            if faulty is not None:
                altered, hearth = request, faulty
        if not judge.compare(request, sent, (hearth, reference)):
            break
    return altered, judge.outcome


def test_equal_servers_show_no_difference(recording: list[list[Exchange]]) -> None:
    assert sum(len(exchanges) for exchanges in recording) > 500


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found(recording: list[list[Exchange]], name: str) -> None:
    """The known differences must not accept a fault either, unless it looks exactly like one of them."""
    places = 0
    for exchanges in recording:
        altered, outcome = replay(exchanges, FAULTS[name])
        if altered is None:
            continue
        places += 1
        if altered.index not in [difference.request.index for difference in outcome.differences]:
            rules = {rule for request, why in outcome.explained if request.index == altered.index for rule in why.rules}
            assert rules & LOOK_ALIKES.get(name, set()), (
                f"not noticed in {altered.method}; explained by {rules or 'nothing'}"
            )
    assert places, "no answer offered a place for this fault"


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_alteration_is_not_reported(recording: list[list[Exchange]], name: str) -> None:
    places = 0
    for exchanges in recording:
        altered, outcome = replay(exchanges, HARMLESS[name])
        places += altered is not None
        assert [found.signature for found in outcome.differences] == []
    assert places, "no answer offered a place for this alteration"
