"""Security rules have the verdicts of Google's emulator, except for the listed differences."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from differential.rule_differences import DIFFERENCES, FAULTS, Case
from differential.rule_sets import RuleValueSet, RuleSets
from differential.rule_verdicts import compare, last_outcomes
from support.servers import Unavailable, emulator, hearth

VERDICTS = int(os.environ.get("HEARTH_RULE_VERDICTS", "1500"))
SEED = int(os.environ.get("HEARTH_TEST_SEED", "1"))


@pytest.fixture(scope="module")
def addresses() -> Iterator[tuple[str, str]]:
    """Hearth's and the emulator's."""
    with ExitStack() as servers:
        try:
            reference = os.environ.get("EMULATOR_ADDRESS") or servers.enter_context(emulator())
            judged = servers.enter_context(hearth())
        except Unavailable as reason:
            pytest.skip(str(reason))
        yield judged, reference


def test_verdicts_are_those_of_the_emulator(addresses: tuple[str, str]) -> None:
    report = compare(*addresses, SEED, VERDICTS)
    if report.unexplained:
        report.write(sys.stdout)
    assert not report.unexplained, f"{len(report.unexplained)} unexplained differences, seed {SEED}"
    # Some requests are allowed, and some are denied.
    assert report.verdicts >= VERDICTS and VERDICTS * 0.1 < report.allowed < VERDICTS * 0.9
    assert report.unanswered < VERDICTS * 0.01
    assert report.sets_refused < report.sets * 0.2


def test_an_unlisted_difference_is_one() -> None:
    """Verdicts that a fault in Hearth might cause are mostly not explained by a listed reason."""
    explained = total = 0
    for number in range(200):
        rules = RuleSets(7, number).draw()
        for asked in rules.asked:
            line = next(place for place, one in enumerate(rules.text.split("\n"), 1) if one.startswith("allow"))
            for ours, theirs in (("OK", "PERMISSION_DENIED"), ("PERMISSION_DENIED", "OK")):
                case = Case(rules, asked, ours, theirs, {line: "false"}, {line: "false"})
                total += 1
                explained += any(one.explains(case) for one in DIFFERENCES)
    assert total > 1000 and explained < total * 0.05
    assert not {one.name for one in DIFFERENCES} & {one.name for one in FAULTS}


def test_the_seed_says_all() -> None:
    first, second = (RuleSets(3, 5).draw() for _ in range(2))
    assert first == second and isinstance(first, RuleValueSet)
    assert first.text != RuleSets(3, 6).draw().text != RuleSets(4, 6).draw().text


def test_texts_of_denials_are_taken_apart() -> None:
    message = (
        "\nfalse for 'get' @ L8, evaluation error at L9:22 for 'get' @ L9, "
        "Unsupported operation error. Received: a, b. for 'get' @ L10, false for 'get' @ L9"
    )
    assert last_outcomes(message) == {8: "false", 9: "false", 10: "Unsupported operation error. Received: a, b."}
    assert last_outcomes("No matching allow statements") == {}
