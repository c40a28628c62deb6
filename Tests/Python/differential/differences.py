"""Every known difference between Hearth and the emulator, with the reason for it.

A rule looks at one request and both answers. If it applies, it changes the two answers so that its
difference is gone and says so; the answers must be equal after all rules, or the difference is
reported. A rule matches as narrowly as it can: the request's shape and both outcomes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .answers import Canonical
from .request import Json, Request


@dataclass
class Case:
    """One request and what the two servers made of it. Rules may change the answers."""

    request: Request
    sent: Json
    hearth: Canonical
    emulator: Canonical


@dataclass(frozen=True)
class Rule:
    """A known difference: `reconcile` removes it from the case and says whether it was there."""

    name: str
    emulator: str
    hearth: str
    source: str
    reconcile: Callable[[Case], bool]
    # Whether the two servers hold different documents afterwards.
    diverges: bool = False


@dataclass
class Explanation:
    rules: list[Rule] = field(default_factory=list)
    complete: bool = False

    @property
    def diverges(self) -> bool:
        return any(rule.diverges for rule in self.rules)


RULES: list[Rule] = []


def explain(request: Request, sent: Json, hearth: Canonical, emulator: Canonical) -> Explanation:
    case = Case(request, sent, hearth, emulator)
    explanation = Explanation()
    for rule in RULES:
        if rule.reconcile(case):
            explanation.rules.append(rule)
    explanation.complete = case.hearth.key == case.emulator.key
    return explanation
