"""Runs an episode against both servers and compares every pair of answers."""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .answers import Canonical, Canonicaliser, Chronicle
from .differences import RULES
from .request import WRITES, Json, Missing, Request, mentions, resolve, stand_ins
from .rules import Explanation, Rule, explain
from .transports import Answer, Server, Unsendable

READS_AT_ONCE_MAX = 8
# Server timestamps have milliseconds. Two within one millisecond would be equal on one server and
# differ on the other, so the tester lets the clock move on in between.
STAMP_SPACING_SECONDS = 0.0025


@dataclass
class Difference:
    """A pair of answers that no rule explains."""

    request: Request
    sent: Json
    hearth: Canonical
    emulator: Canonical

    # The same answers without what known differences explain.
    rest: tuple[Canonical, Canonical]

    @property
    def signature(self) -> str:
        """The kind of the difference: the same for many random requests with one cause."""
        hearth, emulator = self.rest
        if hearth.code != emulator.code:
            # The error message distinguishes causes better than the deliberate error.
            return f"{self.request.method} | {emulator.code} -> {hearth.code}: {_gist(emulator, hearth)}"
        elif hearth.key[:3] != emulator.key[:3]:
            outcome = f"{_outcome(emulator)} -> {_outcome(hearth)}"
        else:
            outcome = "content: " + first_difference(emulator.body, hearth.body)
        return f"{self.request.method} | {self.request.spoiled or 'good'} | {outcome}"


def _outcome(answer: Canonical) -> str:
    return answer.code + (f" ({answer.shape})" if answer.shape else "") + (f" {answer.http}" if answer.http else "")


def _gist(*answers: Canonical) -> str:
    """The beginning of the first message, without names: enough to distinguish causes."""
    text = next((answer.message for answer in answers if answer.message), "")
    text = re.sub(r"(value for|property) \S+", r"\1 …", _text(text))
    return re.sub(r'"[^"]*"|\[[^\]]*\]|\d+', "…", text)[:60]


def first_difference(left: Any, right: Any, path: str = "") -> str:
    """The first difference of two canonical bodies, without the indexes and names that vary from case to case."""
    if type(left) is not type(right):
        return f"{path}: {_brief(left)} / {_brief(right)}"
    if isinstance(left, dict):
        for key in left.keys() | right.keys():
            if (key in left) != (key in right):
                return f"{path}.{key if len(key) > 3 else '*'} only in {'emulator' if key in left else 'hearth'}"
        for key in left:
            if left[key] != right[key]:
                return first_difference(left[key], right[key], f"{path}.{key if len(key) > 3 else '*'}")
    if isinstance(left, list):
        for one, other in zip(left, right, strict=False):
            if one != other:
                if len(left) != len(right):
                    return f"{path}[] {'more' if len(left) > len(right) else 'fewer'} in emulator"
                return first_difference(one, other, f"{path}[]")
        if len(left) != len(right):
            return f"{path}[] {'more' if len(left) > len(right) else 'fewer'} in emulator"
    return f"{path}: {_brief(left)} / {_brief(right)}"


def _brief(node: Any) -> str:
    if isinstance(node, list) and node and isinstance(node[0], str):
        return str(node[0])
    return type(node).__name__ if isinstance(node, dict | list) else str(node)[:40]


@dataclass
class Outcome:
    """The outcome of one episode."""

    compared: list[tuple[Request, str]] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    explained: list[tuple[Request, Explanation]] = field(default_factory=list)
    messages: list[tuple[str, str, str]] = field(default_factory=list)
    left_out: int = 0
    # Set when the servers' states differ, so that the rest of the episode is not comparable.
    abandoned: int = 0


class Judge:
    """Compares the answers of one episode, one request after another. It sends no requests."""

    def __init__(self, rules: list[Rule] = RULES) -> None:
        started = time.time_ns()
        self._rules = rules
        self.hearth = Chronicle(started)
        self.emulator = Chronicle(started)
        self.outcome = Outcome()

    def compare(self, request: Request, sent: tuple[Json, Json], answers: tuple[Answer, Answer]) -> bool:
        """Compares Hearth's answer with the emulator's; returns whether the episode may continue."""
        hearth = Canonicaliser(self.hearth, request, sent[0]).run(answers[0])
        emulator = Canonicaliser(self.emulator, request, sent[1]).run(answers[1])
        self.outcome.compared.append((request, emulator.code))
        if hearth.key == emulator.key:
            pair = (request.method, _text(emulator.message), _text(hearth.message))
            if pair[1] != pair[2]:
                self.outcome.messages.append(pair)
            return True
        explanation = explain(self._rules, request, sent[0], copy.deepcopy(hearth), copy.deepcopy(emulator))
        if explanation.complete:
            self.outcome.explained.append((request, explanation))
            return not explanation.diverges
        rest = explanation.case
        assert rest is not None
        difference = Difference(request, sent[0], hearth, emulator, (rest.hearth, rest.emulator))
        self.outcome.differences.append(difference)
        # After an unexplained difference in a write the states differ, and all later differences follow from it.
        return request.method not in WRITES and not explanation.diverges


# One request, what was sent to each server, and what each answered.
Exchange = tuple[Request, tuple[Json, Json], tuple[Answer, Answer]]


class Pair:
    """The two servers side by side."""

    def __init__(self, hearth: str, emulator: str) -> None:
        self.hearth = Server(hearth)
        self.emulator = Server(emulator)
        self._last_stamp = 0.0

    def close(self) -> None:
        self.hearth.close()
        self.emulator.close()

    def run(self, requests: list[Request], seen: list[Exchange] | None = None) -> Outcome:
        """Sends the requests in order; adjacent reads run concurrently.

        Every exchange is recorded in `seen`, if it is given.
        """
        judge = Judge()
        position = 0
        for group in groups(requests):
            position += len(group)
            for exchange in self._send(group, judge):
                if seen is not None:
                    seen.append(exchange)
                if not judge.compare(*exchange):
                    judge.outcome.abandoned = len(requests) - position
                    return judge.outcome
        return judge.outcome

    def clear(self, database: str) -> None:
        """Empties the episode's database, so that neither server's memory grows with every episode."""
        for server in (self.hearth, self.emulator):
            server.rest.clear(database)

    def _send(self, group: list[Request], judge: Judge) -> list[Exchange]:
        started: list[tuple[Request, tuple[Json, Json], Any]] = []
        answered: list[Exchange] = []
        for request in group:
            try:
                if stand_ins(request.body, judge.hearth.answers) != stand_ins(request.body, judge.emulator.answers):
                    raise Missing("one server's answer lacks what the other's has, by a known difference")
                sent = (
                    resolve(request.body, judge.hearth.answers),
                    resolve(request.body, judge.emulator.answers),
                )
                self._let_the_clock_move(request)
                pending = self._start(request, sent)
            except (Missing, Unsendable):
                judge.outcome.left_out += 1
                continue
            if request.rest:
                # One connection has one request at a time.
                answered.append((request, sent, self._finish(request, pending)))
            else:
                started.append((request, sent, pending))
        answered += [(request, sent, self._finish(request, pending)) for request, sent, pending in started]
        return sorted(answered, key=lambda exchange: exchange[0].index)

    def _start(self, request: Request, sent: tuple[Json, Json]) -> Any:
        hearth, emulator = self.hearth.transport(request.rest), self.emulator.transport(request.rest)
        return hearth.start(request.method, sent[0]), emulator.start(request.method, sent[1])

    def _finish(self, request: Request, pending: Any) -> tuple[Answer, Answer]:
        hearth, emulator = self.hearth.transport(request.rest), self.emulator.transport(request.rest)
        return hearth.finish(pending[0]), emulator.finish(pending[1])

    def _let_the_clock_move(self, request: Request) -> None:
        if mentions(request.body, ("setToServerValue",)):
            wait = self._last_stamp + STAMP_SPACING_SECONDS - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            self._last_stamp = time.monotonic()


def _text(message: str) -> str:
    """A message without the parts that vary from episode to episode, so that equal messages are counted together."""
    message = re.sub(r"demo(-\w+)+", "P", message)
    message = re.sub(r"\d{13,}", "#", message)
    return re.sub(r"(.)\1{40,}", r"\1…", message)[:400]


def groups(requests: list[Request]) -> Iterator[list[Request]]:
    """Splits into runs of reads that commute; all other requests are single."""
    group: list[Request] = []
    for request in requests:
        if request.commutes and len(group) < READS_AT_ONCE_MAX:
            group.append(request)
            continue
        if group:
            yield group
        group = [request] if request.commutes else []
        if not request.commutes:
            yield [request]
    if group:
        yield group
