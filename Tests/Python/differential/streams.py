"""Runs the same sequences on Listen and Write streams of Hearth and of Google's emulator, and compares the messages.

    python -m differential.streams              # compares
    python -m differential.streams --markdown   # the known differences as a table

Data that only a server knows is replaced: `W3` is the time of the sequence's third commit; of tokens and stream ids
only the presence is compared; a boundary's read time is that of the last commit which it covers. The emulator answers
most changes with the whole new result; its effect on a client must equal that of Hearth's single messages.
`DIFFERENCES` lists the permitted differences and their reasons; any other difference fails.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from support.servers import Unavailable, emulator, hearth

from . import stream_sequences
from .stream_sequences import SEQUENCES
from .stream_side import BOUNDARY, Message, Side

#: For the first message of an optional answer, and for further messages.
FIRST_SECONDS, FOLLOWING_SECONDS = 0.7, 0.2
#: The longer wait for a sequence whose first result differed: a busy machine is not a difference.
PATIENCE = 8


# Differences


@dataclass
class Case:
    """The messages of both servers at one moment. A rule changes them so that its difference is removed."""

    sequence: str
    moment: str
    hearth: list[Message]
    emulator: list[Message]
    sides: tuple[Side, Side]


@dataclass(frozen=True)
class Difference:
    name: str
    emulator: str
    hearth: str
    why: str
    reconcile: Callable[[Case], bool]


def _blocks(messages: list[Message]) -> Iterator[tuple[int, int, int]]:
    """The emulator's whole new result of a target: its id, the index of RESET and the one after CURRENT."""
    for start, message in enumerate(messages):
        if message[0] == "RESET" and len(message[1]) == 1:
            (target,) = message[1]
            end = start + 1
            while end < len(messages) and messages[end][0] == "change" and messages[end][3:] == ((target,), ()):
                end += 1
            if end < len(messages) and messages[end][:2] == ("CURRENT", (target,)):
                yield target, start, end + 1


def whole_results(case: Case) -> bool:
    """Replaces each whole result of the emulator by its changes."""
    side = case.sides[1]
    # Documents that the client never had cannot have changed.
    blocks = [block for block in _blocks(case.emulator) if block[0] in side.state]
    if not blocks:
        return False
    is_resumed = {ids[0] for kind, ids, *_ in case.emulator if kind == "ADD"}
    net: dict[str, tuple[set[int], set[int]]] = {}
    rest: list[Message] = []
    place = 0
    for target, start, end in blocks:
        rest += case.emulator[place:start]
        before = side.state[target]
        after = {message[1]: message[2] for message in case.emulator[start + 1 : end - 1]}
        for path in after:
            if before.get(path) != after[path]:
                net.setdefault(path, (set(), set()))[0].add(target)
        for path in before.keys() - after.keys():
            net.setdefault(path, (set(), set()))[1].add(target)
        if target in is_resumed:
            rest.append(case.emulator[end - 1])
        place = end
    rest += case.emulator[place:]
    # Messages for targets of documents belong to the same change.
    others = [message for message in rest if message[0] in ("change", "delete")]
    rest = [message for message in rest if message not in others]
    for message in others:
        ids = message[3] if message[0] == "change" else ()
        gone = message[4] if message[0] == "change" else message[2]
        known = net.setdefault(message[1], (set(), set()))
        known[0].update(target for target in ids if side.state.get(target, {}).get(message[1]) != message[2])
        known[1].update(target for target in gone if message[1] in side.state.get(target, {}))
    made: list[Message] = []
    for path, (shown, gone) in net.items():
        now = side.exists(path)
        if now is None:
            made.append(("delete", path, tuple(sorted(gone)), True))
        else:
            made.append(("change", path, now, tuple(sorted(shown)), tuple(sorted(gone))))
    # Without a change a boundary is not needed.
    if not made and not is_resumed:
        rest = [message for message in rest if message[0] != BOUNDARY]
    first = next((n for n, message in enumerate(rest) if message[0] in ("CURRENT", BOUNDARY)), len(rest))
    case.emulator = rest[:first] + sorted(made) + rest[first:]
    case.hearth = _ordered(case.hearth)
    return True


def _ordered(messages: list[Message]) -> list[Message]:
    """With the documents between two other messages by their names."""
    made: list[Message] = []
    run: list[Message] = []
    for message in messages:
        if message[0] in ("change", "delete", "remove"):
            run.append(message)
        else:
            made += [*sorted(run), message]
            run = []
    return made + sorted(run)


def all_documents(case: Case) -> bool:
    """Removes repeated messages of the emulator for a documents target."""
    side = case.sides[1]
    if any(message[0] in ("ADD", "RESET") for message in case.emulator):
        return False
    kept: list[Message] = []
    for message in case.emulator:
        if message[0] == "change" and not message[4]:
            news = [target for target in message[3] if side.state.get(target, {}).get(message[1]) != message[2]]
            if not news:
                continue
        if message[0] == "delete" and not [t for t in message[2] if message[1] in side.state.get(t, {})]:
            continue
        kept.append(message)
    if len(kept) == len(case.emulator):
        return False
    if all(message[0] == BOUNDARY for message in kept):
        kept = []
    case.emulator = kept
    return True


def filters(case: Case) -> bool:
    """The count must be right, and a bloom filter be there exactly when the client's count was wrong."""
    found = [message for message in case.hearth if message[0] == "filter"]
    side = case.sides[0]
    for message in found:
        state = dict(side.state.get(message[1], {}))
        for other in case.hearth:
            if other[0] == "change" and message[1] in other[3]:
                state[other[1]] = other[2]
            elif message[1] in (other[4] if other[0] == "change" else other[2] if other[0] == "delete" else ()):
                state.pop(other[1], None)
        if message[2] != len(state) or message[3] != (case.sequence == "resumed_with_a_wrong_count"):
            return False
    case.hearth = [message for message in case.hearth if message[0] != "filter"]
    return bool(found)


def _exactly(sequence: str, moment: str, hearth_: list[Message], emulator_: list[Message]) -> Callable[[Case], bool]:
    """A difference at one moment, of which both servers' messages are known exactly."""

    def reconcile(case: Case) -> bool:
        if (case.sequence, case.moment, case.hearth, case.emulator) != (sequence, moment, hearth_, emulator_):
            return False
        case.hearth = case.emulator = []
        return True

    return reconcile


def _either(*rules: Callable[[Case], bool]) -> Callable[[Case], bool]:
    return lambda case: any(rule(case) for rule in rules)


ONE = ("{1:n=i1}", "W1", "W1")
TWO = ("{1:n=i2}", "W1", "W2")
LOADED = [("CURRENT", (2,), True, True), (BOUNDARY, "W1", True)]
REFUSED, EXISTS = ("REMOVE", (2,), 3), ("REMOVE", (2,), 6)
INVALID, UNKNOWN = ("ended", "INVALID_ARGUMENT"), ("ended", "UNKNOWN")

DIFFERENCES: list[Difference] = [
    Difference(
        "resuming from the future",
        "takes any `read_time`",
        "refuses the target with INVALID_ARGUMENT",
        "13.6: nobody can know the future",
        _exactly(
            "a_time_in_the_future",
            "added",
            [REFUSED],
            [("ADD", (2,)), ("RESET", (2,)), ("change", "c/a", ONE, (2,), ()), *LOADED],
        ),
    ),
    Difference(
        "removing what is not there",
        "says nothing",
        "answers REMOVE",
        "13.8: SDKs count the answers to their requests, and wait for this one",
        _exactly("removed", "removed again", [("REMOVE", (2,), 0)], []),
    ),
    Difference(
        "`once`",
        "takes no notice of it",
        "removes the target after its first snapshot",
        "13.8; comment of `Target.once` in firestore.proto",
        _either(
            _exactly(
                "once",
                "added",
                [("ADD", (2,)), ("change", "c/a", ONE, (2,), ()), *LOADED, ("REMOVE", (2,), 0)],
                [("ADD", (2,)), ("change", "c/a", ONE, (2,), ()), *LOADED],
            ),
            _exactly(
                "once",
                "nothing more",
                [],
                [("RESET", (2,)), ("change", "c/a", TWO, (2,), ()), LOADED[0], (BOUNDARY, "W2", True)],
            ),
        ),
    ),
    Difference(
        "a target's id twice",
        "ends the stream with UNKNOWN",
        "refuses the target with ALREADY_EXISTS, the stream goes on",
        "13.9: as production",
        _exactly("a_target_twice", "again", [EXISTS], [UNKNOWN]),
    ),
    Difference(
        "an invalid query",
        "answers ADD, then ends the stream with UNKNOWN",
        "refuses the target with INVALID_ARGUMENT, the stream goes on",
        "13.9: as production",
        _exactly("a_bad_query", "a negative limit", [("REMOVE", (4,), 3)], [("ADD", (4,)), UNKNOWN]),
    ),
    Difference(
        "an invalid name of a document",
        "answers ADD before it refuses",
        "refuses at once",
        "13.9: the query form is refused like that by production; clients take both",
        _exactly("a_bad_name", "of a collection", [("REMOVE", (1,), 3)], [("ADD", (1,)), ("REMOVE", (1,), 3)]),
    ),
    Difference(
        "requests that end a stream",
        "ends it with UNKNOWN for a negative id, and for a request that neither adds nor removes",
        "ends it with INVALID_ARGUMENT",
        "13.9: as production",
        _either(
            _exactly("a_negative_id", "added", [INVALID], [UNKNOWN]),
            _exactly("neither", "nothing to add or remove", [INVALID], [UNKNOWN]),
        ),
    ),
    Difference(
        "a first request without database",
        "takes the database from a header",
        "ends the stream with INVALID_ARGUMENT",
        "13.1: the field is required, and SDKs set it",
        _exactly(
            "without_database",
            "added",
            [INVALID],
            [("ADD", (2,)), ("CURRENT", (2,), True, True), (BOUNDARY, "W0", True)],
        ),
    ),
    Difference(
        "a request of a Write stream without writes",
        "answers without a commit time, and ends the stream with OK",
        "answers with one, and goes on until the client closes",
        "7.6: the server may do either",
        _exactly(
            "an_empty_write",
            "without writes",
            [("written", False, True, (), True)],
            [("written", False, True, (), False), ("ended", "OK")],
        ),
    ),
    Difference(
        "a write without token",
        "takes it",
        "ends the stream with INVALID_ARGUMENT",
        "7.6; comment of `WriteRequest.stream_token` in firestore.proto: required in all but the first message",
        _exactly("a_write_without_token", "a write", [INVALID], [("written", False, True, (("W1", ()),), True)]),
    ),
    Difference(
        "whole results",
        "answers whatever touches a collection, be it a no-op or outside of the filter, and each resumption with "
        "RESET, the whole result and CURRENT, for each target on its own; removals are never sent",
        "reports what changed: one message for a document and all its targets, removals with `removedTargetIds`, "
        "nothing when nothing changed",
        "13.3-13.6: as production",
        whole_results,
    ),
    Difference(
        "all documents of a target",
        "sends all documents of a documents target again when one changes",
        "sends the one that changed",
        "13.4: as production",
        all_documents,
    ),
    Difference(
        "existence filters",
        "never sends one",
        "sends one when a resumed target says how many documents it has; with a bloom filter when that isn't right",
        "13.7: as production",
        filters,
    ),
]


# The comparison


@dataclass
class Report:
    moments: int = 0
    messages: int = 0
    hits: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)

    def add(self, other: Report) -> None:
        self.moments += other.moments
        self.messages += other.messages
        self.hits += other.hits
        self.unexplained += other.unexplained


def gather(sides: Sequence[Side], patience: float) -> list[list[Message]]:
    """The messages of both servers until both are silent."""
    came: list[list[tuple[bool, Any]]] = [[] for _ in sides]
    deadline = time.monotonic() + FIRST_SECONDS * patience
    while (now := time.monotonic()) < deadline:
        for side, messages in zip(sides, came, strict=True):
            if news := side.poll():
                messages += news
                quiet = now + FOLLOWING_SECONDS * patience
                deadline = quiet if all(came) else max(deadline, quiet)
        time.sleep(0.005)
    return [side.normalise(messages) for side, messages in zip(sides, came, strict=True)]


def judge(case: Case, report: Report) -> None:
    said = [list(case.hearth), list(case.emulator)]
    report.moments += 1
    report.messages += len(case.hearth)
    for rule in DIFFERENCES:
        if case.hearth != case.emulator and rule.reconcile(case):
            report.hits[rule.name] += 1
    if not any(message[0] in ("ADD", "RESET") for message in case.hearth + case.emulator):
        # The order of documents is not significant except in a new result.
        case.hearth, case.emulator = _ordered(case.hearth), _ordered(case.emulator)
    if case.hearth != case.emulator:
        lines = [f"{case.sequence}, {case.moment}:"]
        for name, messages, reduced in (("Hearth", said[0], case.hearth), ("emulator", said[1], case.emulator)):
            lines.append(f"  {name} said {messages}")
            lines.append(f"  that comes to {reduced}")
        report.unexplained.append("\n".join(lines))


def moments(
    hearth_: str, emulator_: str, sequences: Sequence[stream_sequences.Sequence] = SEQUENCES, patience: float = 1
) -> Iterator[Case]:
    """Runs the sequences on both servers, and returns the messages at each moment."""
    for sequence in sequences:
        sides = (Side("Hearth", hearth_), Side("emulator", emulator_))
        for both in zip(*(sequence(side) for side in sides), strict=True):
            said = gather(sides, patience)
            yield Case(sequence.__name__, both[0], list(said[0]), list(said[1]), sides)
            for side, messages in zip(sides, said, strict=True):
                side.take_in(messages)
        for side in sides:
            side.close()


def compare(hearth_: str, emulator_: str, sequences: Sequence[stream_sequences.Sequence] = SEQUENCES) -> Report:
    report = Report()
    for sequence in sequences:
        for patience in (1, PATIENCE):
            trial = Report()
            for case in moments(hearth_, emulator_, [sequence], patience):
                judge(case, trial)
            if not trial.unexplained:
                break
        report.add(trial)
    return report


def warm_up(address: str) -> None:
    """The emulator's first requests take seconds."""
    side = Side("warm-up", address)
    side.commit(a=1)
    side.add(2, stream_sequences.C)
    side.listen.take(30)
    side.begin_write()
    assert side.write is not None
    side.write.take(30)
    side.close()


def table() -> str:
    lines = ["| streams | the emulator | Hearth | why |", "| --- | --- | --- | --- |"]
    return "\n".join([*lines, *(f"| {one.name} | {one.emulator} | {one.hearth} | {one.why} |" for one in DIFFERENCES)])


def main() -> int:
    parser = argparse.ArgumentParser(prog="differential.streams", description=__doc__)
    parser.add_argument("--hearth", help="host:port of the server to judge; started from HEARTH_BINARY if absent")
    parser.add_argument("--emulator", help="host:port of Google's emulator; started if absent")
    parser.add_argument("--sequence", help="only this one")
    parser.add_argument("--markdown", action="store_true", help="print the table of known differences and end")
    arguments = parser.parse_args()
    if arguments.markdown:
        print(table())
        return 0
    with ExitStack() as servers:
        try:
            reference = arguments.emulator or servers.enter_context(emulator())
            judged = arguments.hearth or servers.enter_context(hearth())
        except Unavailable as reason:
            print(f"skipped: {reason}", file=sys.stderr)
            return 0
        warm_up(reference)
        chosen = [one for one in SEQUENCES if arguments.sequence in (None, one.__name__)]
        report = compare(judged, reference, chosen)
    print(f"{report.moments} moments, {report.messages} messages; known differences: {dict(report.hits)}")
    print("\n".join(report.unexplained))
    return 1 if report.unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
