"""What a known difference is, and how the rules are applied to a pair of answers.

A rule looks at one request and both answers. If its difference is there, it takes it out of the two
answers. When all rules have been asked, the answers must be equal, or the difference is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .answers import Canonical
from .request import WRITES, Json, Request


@dataclass
class Case:
    """One request and the two servers' answers. Rules change the answers."""

    request: Request
    sent: Json
    hearth: Canonical
    emulator: Canonical

    @property
    def both_good(self) -> bool:
        return self.hearth.key[:3] == self.emulator.key[:3] and self.hearth.code == "OK"

    def agree(self) -> None:
        """Removes the whole difference: the answers count as equal."""
        self.hearth = self.emulator


@dataclass(frozen=True)
class Rule:
    """A known difference: `reconcile` removes it from the case and returns whether it was present."""

    name: str
    emulator: str
    hearth: str
    source: str
    reconcile: Callable[[Case], bool]
    # The two servers contain different documents afterwards, although both answers are equal.
    diverges: bool = False


@dataclass(frozen=True)
class Note:
    """A known difference that no random request causes; the end-to-end tests cover it."""

    name: str
    emulator: str
    hearth: str
    source: str


@dataclass
class Explanation:
    rules: list[str] = field(default_factory=list)
    complete: bool = False
    diverges: bool = False
    # The answers without what the rules explain; equal if the explanation is complete.
    case: Case | None = None


def explain(rules: list[Rule], request: Request, sent: Json, hearth: Canonical, emulator: Canonical) -> Explanation:
    """Applies all rules. States differ from here on if a write, or a new transaction, went through on one side only."""
    changes = request.method in WRITES or request.method == "BeginTransaction" or "newTransaction" in sent
    one_sided = changes and (hearth.code == "OK") != (emulator.code == "OK")
    case = Case(request, sent, hearth, emulator)
    explanation = Explanation(diverges=one_sided, case=case)
    for rule in rules:
        if case.hearth.key == case.emulator.key:
            break
        if rule.reconcile(case):
            explanation.rules.append(rule.name)
            explanation.diverges = explanation.diverges or rule.diverges
    explanation.complete = case.hearth.key == case.emulator.key
    return explanation


def outcome(
    emulator: str,
    hearth: str,
    *,
    text: str = "",
    said: str = "",
    methods: tuple[str, ...] = (),
    when: Callable[[Case], bool] = lambda case: True,
) -> Callable[[Case], bool]:
    """A difference of the outcome: `emulator` and `hearth` are codes, several joined by `|`.

    `text` and `said` are regular expressions for the emulator's and Hearth's messages.
    """

    def reconcile(case: Case) -> bool:
        if case.emulator.code not in emulator.split("|") or case.hearth.code not in hearth.split("|"):
            return False
        if methods and case.request.method not in methods:
            return False
        if not re.search(text, case.emulator.message) or not re.search(said, case.hearth.message):
            return False
        if not when(case):
            return False
        case.agree()
        return True

    return reconcile


def query_of(sent: Json) -> Json:
    """The structured query of a request, or an empty one."""
    return sent.get("structuredQuery") or sent.get("structuredAggregationQuery", {}).get("structuredQuery", {})


def filters_of(sent: Json) -> Iterator[Json]:
    """Every field filter and unary filter in a query."""

    def walk(node: Json) -> Iterator[Json]:
        if "compositeFilter" in node:
            for member in node["compositeFilter"].get("filters", []):
                yield from walk(member)
        else:
            yield from (member for member in node.values() if isinstance(member, dict))

    yield from walk(query_of(sent).get("where", {}))


def written_names(sent: Json) -> list[str]:
    """The documents that a commit or batch write names, one entry per write."""
    names = []
    for write in sent.get("writes", []):
        target = write.get("update", {}).get("name") or write.get("delete") or write.get("verify")
        names.append(target or write.get("transform", {}).get("document", ""))
    return names


def members(node: Json, key: str) -> Iterator[Json]:
    """Every member of that name, at any depth."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name == key:
                yield value
            yield from members(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from members(value, key)
