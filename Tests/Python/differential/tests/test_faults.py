"""The judge is judged: equal servers give no difference, and every planted fault is found.

Both sides are Google's emulator; a fault alters answers of one side on their way.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from differential.episodes import Episode
from differential.request import Request
from differential.runner import Outcome, Pair
from differential.tests.faults import FAULTS, HARMLESS, Fault
from differential.transports import Answer
from support.servers import Unavailable, emulator

SEED = 20_241
EPISODES_MAX = 60


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    try:
        with emulator() as judged, emulator() as reference:
            pair = Pair(judged, reference)
            yield pair
            pair.close()
    except Unavailable as reason:
        pytest.skip(str(reason))


class Planted:
    """Alters one answer of the judged side in each episode, at a place that the fault can act on."""

    def __init__(self, pair: Pair, fault: Fault, seed: int) -> None:
        self._pair = pair
        self._fault = fault
        self._random = random.Random(seed)
        self.altered: Request | None = None

    def run(self, requests: list[Request]) -> Outcome:
        self.altered = None
        whole = self._pair._finish
        start = self._random.randrange(len(requests) // 2)

        def finish(request: Request, pending: object) -> tuple[Answer, Answer]:
            answers = whole(request, pending)
            if self.altered is None and request.index >= start:
                faulty = self._fault(answers[0])
                if faulty is not None:
                    self.altered = request
                    return faulty, answers[1]
            return answers

        self._pair._finish = finish  # type: ignore[method-assign]
        try:
            return self._pair.run(requests)
        finally:
            self._pair._finish = whole  # type: ignore[method-assign]


_projects = iter(range(10**9))


def _episodes() -> Iterator[list[Request]]:
    for _ in range(EPISODES_MAX):
        # Every run takes new numbers, because the emulators keep what earlier runs have written.
        yield Episode(SEED, next(_projects), "both", "faults").draw()


def test_equal_servers_show_no_difference(pair: Pair) -> None:
    for requests in _episodes():
        outcome = pair.run(requests)
        assert [found.signature for found in outcome.differences] == []
        assert not outcome.explained


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found(pair: Pair, name: str) -> None:
    planted = Planted(pair, FAULTS[name], SEED)
    for requests in _episodes():
        outcome = planted.run(requests)
        if planted.altered is not None:
            found = [difference.request.index for difference in outcome.differences]
            assert planted.altered.index in found, f"not noticed in {planted.altered.method}"
            return
    pytest.fail(f"no answer in {EPISODES_MAX} episodes offered a place for this fault")


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_alteration_is_not_reported(pair: Pair, name: str) -> None:
    planted = Planted(pair, HARMLESS[name], SEED)
    for requests in _episodes():
        outcome = planted.run(requests)
        assert [found.signature for found in outcome.differences] == []
        if planted.altered is not None:
            return
    pytest.fail(f"no answer in {EPISODES_MAX} episodes offered a place for this alteration")
