"""Collects the outcomes of many episodes and prints the unexplained differences first."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, TextIO

from .differences import RULES
from .request import Request
from .runner import Difference
from .workers import Result

EXAMPLES_MAX = 100
MESSAGE_PAIRS_MAX = 60


@dataclass
class Group:
    """Differences of one signature."""

    count: int = 0
    # The shortest known history: the seed's episode, its requests up to the difference, and the difference.
    episode: int = 0
    project: str = ""
    history: list[Request] = field(default_factory=list)
    example: Difference | None = None
    shrunk: bool = False


@dataclass
class Report:
    kinds: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    transports: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    messages: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    groups: dict[str, Group] = field(default_factory=lambda: defaultdict(Group))
    compared: int = 0
    spoiled: int = 0
    left_out: int = 0
    abandoned: int = 0
    episodes: int = 0
    differences: int = 0

    def add(self, result: Result) -> None:
        outcome = result.outcome
        self.episodes += 1
        self.compared += len(outcome.compared)
        self.left_out += outcome.left_out
        self.abandoned += outcome.abandoned
        for request, code in outcome.compared:
            self.kinds[request.kind] += 1
            self.codes[code] += 1
            self.transports["REST" if request.rest else "gRPC"] += 1
            self.spoiled += bool(request.spoiled)
        for _, explanation in outcome.explained:
            self.rules.update(explanation.rules)
        self.messages.update(outcome.messages)
        self.differences += len(outcome.differences)
        for difference in outcome.differences:
            group = self.groups[difference.signature]
            group.count += 1
            before = [request for request in result.requests if request.index <= difference.request.index]
            if group.example is None or len(before) < len(group.history):
                group.episode, group.project = result.number, result.project
                group.history, group.example = before, difference

    def write(self, out: TextIO, seconds: float) -> None:
        print(f"{self.compared} requests compared in {self.episodes} episodes, {seconds:.0f} s", file=out)
        print(
            f"{self.spoiled} of them made wrong on purpose, {self.left_out} left out, {self.abandoned} not sent "
            "because the states differed",
            file=out,
        )
        self._unexplained(out)
        self._table(out, "Known differences", self.rules)
        silent = [rule.name for rule in RULES if rule.name not in self.rules]
        if silent:
            print("\nRules without a hit: " + ", ".join(silent), file=out)
        self._table(out, "Kinds of request", self.kinds)
        self._table(out, "Outcomes (emulator)", self.codes)
        self._table(out, "Transports", self.transports)
        print("\nMessages that differ while the codes agree, most frequent first:", file=out)
        for (method, emulator, hearth), count in self.messages.most_common(MESSAGE_PAIRS_MAX):
            print(
                f"  {count:6} {method}\n         emulator: {emulator[:300]!r}\n         hearth:   {hearth[:300]!r}",
                file=out,
            )

    def _unexplained(self, out: TextIO) -> None:
        print(f"\nUnexplained differences: {self.differences} in {len(self.groups)} groups", file=out)
        ordered = sorted(self.groups.items(), key=lambda entry: -entry[1].count)
        for signature, group in ordered[:EXAMPLES_MAX]:
            print(f"\n=== {group.count} x {signature}", file=out)
            _print_example(out, group)
        for signature, group in ordered[EXAMPLES_MAX:]:
            print(f"    {group.count} x {signature} (episode {group.episode})", file=out)

    @staticmethod
    def _table(out: TextIO, title: str, counter: Counter[str]) -> None:
        print(f"\n{title}", file=out)
        for name, count in counter.most_common():
            print(f"  {count:8}  {name}", file=out)


def _print_example(out: TextIO, group: Group) -> None:
    difference = group.example
    if difference is None:
        return
    before = group.history[:-1]
    print(f"    episode {group.episode}, {len(before)} requests before it", file=out)
    if group.shrunk:
        for request in before:
            print(f"    before   [{request.index}] {request.method} {_brief(request.body)}", file=out)
    transport = "REST" if difference.request.rest else "gRPC"
    print(
        f"    request  [{difference.request.index}] {transport} {difference.request.method} {_brief(difference.sent)}",
        file=out,
    )
    for side, answer in (("emulator", difference.emulator), ("hearth  ", difference.hearth)):
        http = f" HTTP {answer.http} {answer.shape}" if answer.http else ""
        content = _brief(answer.body) if answer.code == "OK" else answer.message[:600]
        print(f"    {side} {answer.code}{http} {content}", file=out)


def _brief(node: Any) -> str:
    text = json.dumps(node, ensure_ascii=True)
    # Long runs of one letter represent long strings; only their length is relevant.
    text = re.sub(r"(.|\\u....)\1{60,}", lambda run: f"{run[1]}…({len(run[0]) // len(run[1])} times)", text)
    return text if len(text) < 3000 else text[:2900] + f"… ({len(text)} letters)"
