"""Tests of the snapshot judge: correct listeners pass, planted faults are found."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from endtoend.crowd import NAMES, QUERIES, Writer
from support.model import Commit, Entry, Moment, Write, entry
from support.snapshots import Boundary, Judge, Log


class Honest:
    """A history, and the log of a listener that saw each of its commits correctly."""

    def __init__(self, seed: int) -> None:
        writer = Writer(0, seed, None, "p", threading.Event())  # type: ignore[arg-type]
        self.commits = []
        for number in range(300):
            writes = [writer.write(name) for name in writer.choice.sample(NAMES, 3)]
            plain = [Write(one.name, one.fields, one.mask, one.transforms) for one in writes]
            self.commits.append(Commit(1000 * (number + 1), tuple(plain), Moment(1000 * number)))
        self.judge = Judge(self.commits, QUERIES)
        self.log = Log("honest", {number: number for number in range(len(QUERIES))})
        before: list[dict[str, Entry]] = [{} for _ in QUERIES]
        documents: dict[str, Any] = {}
        for commit in self.commits:
            commit.apply(documents)
            changes = []
            for number, query in enumerate(QUERIES):
                now = {
                    d.name: entry(d.created, d.updated, query.shown(d.fields)) for d in query.result(documents.values())
                }
                for name in before[number].keys() | now.keys():
                    if before[number].get(name) != now.get(name):
                        changes.append((number, name, now.get(name)))
                before[number] = now
            self.log.boundaries.append(Boundary(commit.time + 7, changes, tuple(self.log.queries)))

    def altered(self, place: int, **changes: Any) -> Log:
        boundaries = list(self.log.boundaries)
        boundaries[place] = Boundary(**(vars(boundaries[place]) | changes))
        return Log("altered", self.log.queries, boundaries)

    def place(self, wanted: Callable[[Boundary], bool]) -> int:
        return next(n for n, boundary in enumerate(self.log.boundaries) if n > 50 and wanted(boundary))


@pytest.fixture(scope="module")
def honest() -> Honest:
    return Honest(1)


def test_the_judge_finds_no_fault_with_an_honest_listener(honest: Honest) -> None:
    assert honest.judge.check(honest.log) == []
    assert all(len(timeline.times) > 10 for timeline in honest.judge.timelines)
    merged = Log("merged", honest.log.queries)
    for number in range(0, 300, 3):
        three = honest.log.boundaries[number : number + 3]
        merged.boundaries.append(
            Boundary(three[-1].read_time, [c for one in three for c in one.changes], three[-1].shown)
        )
    assert honest.judge.check(merged) == []


def test_the_judge_has_two_minds_that_agree(honest: Honest) -> None:
    """A result that is updated commit by commit equals the newly computed result."""
    for time_ in range(0, 300_000, 37_000):
        for number in range(len(QUERIES)):
            plain = 0
            for name, shown in honest.judge.result_at(number, time_).items():
                plain ^= hash((name, shown))
            assert honest.judge.timelines[number].at(time_) == plain


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("fault", ["torn", "lost", "late", "early", "stale value", "back in time", "of no time"])
def test_the_judge_finds_faults(honest: Honest, fault: str, seed: int) -> None:
    choice = random.Random(seed)
    changing = [n for n, one in enumerate(honest.log.boundaries) if n > 20 and len({c[1] for c in one.changes}) > 1]
    place = choice.choice(changing[:-5])
    boundary, following = honest.log.boundaries[place : place + 2]
    changes = list(boundary.changes)
    match fault:
        case "torn":
            # The rest of a commit arrives with the next boundary.
            half = [change for change in changes if change[1] == changes[0][1]]
            rest = [change for change in changes if change[1] != changes[0][1]]
            log = honest.altered(place, changes=half)
            log.boundaries[place + 1] = Boundary(following.read_time, [*rest, *following.changes], following.shown)
        case "lost":
            changes.pop(choice.randrange(len(changes)))
            log = honest.altered(place, changes=changes)
        case "late":
            log = honest.altered(place, changes=[])
            log.boundaries[place + 1] = Boundary(following.read_time, [*changes, *following.changes], following.shown)
        case "early":
            log = honest.altered(place, read_time=boundary.read_time - 1000)
        case "stale value":
            # For a document that exists from here on.
            places = [
                n for n in changing if n >= place and any(shown for _, _, shown in honest.log.boundaries[n].changes)
            ]
            changes = list(honest.log.boundaries[places[0]].changes)
            number = choice.choice([n for n, change in enumerate(changes) if change[2] is not None])
            target, name, shown = changes[number]
            changes[number] = (target, name, shown._replace(digest=shown.digest ^ 1))
            log = honest.altered(places[0], changes=changes)
        case "back in time":
            log = honest.altered(place, read_time=honest.log.boundaries[place - 1].read_time - 1)
        case "of no time":
            target = changes[0][0]
            nobody = entry(1, 1, {"n": 1})
            log = honest.altered(place, changes=[*changes, (target, "a/stranger", nobody)])
    assert honest.judge.check(log) != []


def test_two_commits_at_one_time_are_a_fault(honest: Honest) -> None:
    twice = [*honest.commits, Commit(honest.commits[5].time, (Write("a/d00", {"n": 1}),))]
    assert Judge(twice, QUERIES).faults
