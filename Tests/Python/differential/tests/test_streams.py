"""Listen and Write streams have the messages of the emulator's, except for the listed differences."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from differential.stream_side import BOUNDARY, Message
from differential.stream_sequences import SEQUENCES
from differential.streams import DIFFERENCES, PATIENCE, Case, Report, judge, moments, warm_up
from support.servers import Unavailable, emulator, hearth


@pytest.fixture(scope="module")
def addresses() -> Iterator[tuple[str, str]]:
    """Hearth's and the emulator's."""
    with ExitStack() as servers:
        try:
            reference = os.environ.get("EMULATOR_ADDRESS") or servers.enter_context(emulator())
            judged = servers.enter_context(hearth())
        except Unavailable as reason:
            pytest.skip(str(reason))
        warm_up(reference)
        yield judged, reference


def spoiled(case: Case) -> Iterator[tuple[str, list[Message]]]:
    """Messages that Hearth might send if it had a fault."""
    said = case.hearth
    yield "a boundary too many", [*said, (BOUNDARY, "W1", True)]
    for place, message in enumerate(said):
        before, after = said[:place], said[place + 1 :]
        if message[0] == "filter":
            yield "a wrong count", [*before, (*message[:2], message[2] + 1, message[3]), *after]
            continue
        yield f"without {message}", before + after
        yield f"twice {message}", [*before, message, message, *after]
        match message:
            case ("change", path, (fields, created, _), ids, removed):
                yield "old content", [*before, ("change", path, (fields + "x", created, "W1"), ids, removed), *after]
                yield "another update time", [*before, ("change", path, (fields, created, "W77"), ids, removed), *after]
                yield "too few targets", [*before, ("change", path, message[2], ids[1:], removed[1:]), *after]
                yield "too many targets", [*before, ("change", path, message[2], (*ids, 77), removed), *after]
                if ids:
                    yield "deleted instead", [*before, ("delete", path, ids, True), *after]
            case ("delete", path, ids, _):
                yield "without a read time", [*before, ("delete", path, ids, False), *after]
                yield "too few targets", [*before, ("delete", path, ids[1:], True), *after]
                yield "left instead", [*before, ("remove", path, ids, True), *after]
            case ("boundary", _, _):
                yield "without a token", [*before, (BOUNDARY, message[1], False), *after]
                yield "an old read time", [*before, (BOUNDARY, "unknown", True), *after]
            case ("REMOVE", ids, code):
                yield "another cause", [*before, ("REMOVE", ids, code + 1), *after]


def test_streams_say_what_the_emulators_say(addresses: tuple[str, str]) -> None:
    """The comparison detects errors: it is tested with wrong answers at each moment."""
    report = Report()
    missed: list[str] = []
    count = 0
    for sequence in SEQUENCES:
        for patience in (1, PATIENCE):
            attempt, blind = Report(), []
            for case in moments(*addresses, [sequence], patience):
                for fault, messages in spoiled(case):
                    if messages == case.emulator:
                        continue  # One difference less.
                    count += 1
                    trial = Report()
                    judge(replace(case, hearth=list(messages), emulator=list(case.emulator)), trial)
                    if not trial.unexplained:
                        blind.append(f"{case.sequence}, {case.moment}: {fault}")
                judge(case, attempt)
            if not attempt.unexplained and not blind:
                break
        report.add(attempt)
        missed += blind
    assert not report.unexplained, "\n".join(report.unexplained)
    assert report.moments >= 100 and count > 1000
    assert not missed, "\n".join(missed)
    # A difference that no longer exists must not be in the list.
    assert [one.name for one in DIFFERENCES if not report.hits[one.name]] == []
