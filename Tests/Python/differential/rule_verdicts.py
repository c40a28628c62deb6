"""Asks Hearth and Google's emulator for verdicts about the same requests under the same security rules.

    python -m differential.rule_verdicts --seed 1 --verdicts 20000
    python -m differential.rule_verdicts --seed 7 --set 42          # one rule set again
    python -m differential.rule_verdicts --markdown                 # the known differences as a table
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, TextIO

from support.servers import Unavailable, emulator, hearth

from .rule_differences import DIFFERENCES, FAULTS, Case
from .rule_sets import TOKENS, Asked, RuleValueSet, RuleSets, stored
from .transports import Server

DENIED = "PERMISSION_DENIED"
NO_ANSWER = "NO_ANSWER"
EXAMPLES_MAX = 40


@dataclass(frozen=True)
class Outcome:
    """The result of one `allow`: false, or an error message."""

    line: int
    method: str
    text: str


_OUTCOME = re.compile(r"(.*?) for '(\w+)' @ L(\d+)(?:, |$)", re.S)


def outcomes(message: str) -> list[Outcome]:
    found = []
    for text, method, line in _OUTCOME.findall(message.removeprefix("\n")):
        text = re.sub(r"^evaluation error at L\d+:\d+$", "error", text)
        found.append(Outcome(int(line), method, text))
    return found


def last_outcomes(message: str) -> dict[int, str]:
    """By line. The emulator reports a rule twice when it evaluates it first without the stored document."""
    return {one.line: one.text for one in outcomes(message)}


class Side:
    """One server, with a project that contains the documents."""

    def __init__(self, address: str, project: str) -> None:
        self.server = Server(address)
        self.address = address
        self.project = project
        self.database = f"projects/{project}/databases/(default)"
        self.stored = stored(self.database)
        host, port = address.rsplit(":", 1)
        self.http = http.client.HTTPConnection(host, int(port), timeout=30)
        self.restore(list(self.stored))

    def load(self, text: str) -> tuple[bool, list[str]]:
        """Whether the rules compile, and the messages."""
        body = {"rules": {"files": [{"name": "security.rules", "content": text}]}, "ignore_errors": True}
        path = f"/emulator/v1/projects/{self.project}:securityRules"
        self.http.request("PUT", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = self.http.getresponse()
        content = answer.read()
        if answer.status != 200:
            return False, [f"HTTP {answer.status}: {content[:300].decode(errors='replace')}"]
        issues = json.loads(content or b"{}").get("issues", [])
        said = []
        for issue in issues:
            place = issue.get("sourcePosition", {})
            said.append(f"{issue['severity'][0]} {place.get('line', 0)}: {issue['description']}")
        return all(not one.startswith("E") for one in said), said

    def start(self, asked: Asked) -> Any:
        text = json.dumps(asked.body).replace('"$/', f'"{self.database}/').replace('"$"', f'"{self.database}"')
        body = json.loads(text)
        transport = self.server.transport(asked.rest)
        return transport, transport.start(asked.method, body, TOKENS[asked.who])

    def restore(self, paths: list[str]) -> None:
        self.finish_restoring(self.start_restoring(paths), paths)

    def finish_restoring(self, pending: Any, paths: list[str]) -> None:
        answer = self.server.grpc.finish(pending)
        if answer.code == NO_ANSWER:
            # The machine is busy; repeating it is safe.
            answer = self.server.grpc.finish(self.start_restoring(paths))
        assert answer.good, answer

    def start_restoring(self, paths: list[str]) -> Any:
        writes = []
        for path in paths:
            name = f"{self.database}/documents/{path}"
            fields = self.stored.get(path)
            writes.append({"delete": name} if fields is None else {"update": {"name": name, "fields": fields}})
        return self.server.grpc.start("Commit", {"database": self.database, "writes": writes})

    def close(self) -> None:
        self.server.close()
        self.http.close()


@dataclass
class Report:
    sets: int = 0
    sets_refused: int = 0
    verdicts: int = 0
    allowed: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    texts: int = 0
    unanswered: int = 0
    hits: Counter[str] = field(default_factory=Counter)
    #: Verdicts that differ without a known reason.
    unexplained: list[str] = field(default_factory=list)
    #: Messages that differ, their number, and an example.
    other_texts: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str], str] = field(default_factory=dict)
    issues: Counter[tuple[str, str]] = field(default_factory=Counter)
    issue_examples: dict[tuple[str, str], str] = field(default_factory=dict)

    def write(self, out: TextIO, seconds: float = 0) -> None:
        print(
            f"{self.verdicts} verdicts of {self.sets} rule sets ({self.sets_refused} refused) in {seconds:.0f} s, "
            f"{self.allowed} of them that it is allowed; {self.texts} reasons compared; "
            f"{self.unanswered} without an answer in time; {len(self.unexplained)} unexplained differences",
            file=out,
        )
        print("  " + ", ".join(f"{count} {kind}" for kind, count in sorted(self.kinds.items())), file=out)
        for one in DIFFERENCES:
            print(f"  {self.hits[one.name]:6} {one.name}", file=out)
        for one in FAULTS:
            print(f"  {self.hits[one.name]:6} {one.name}: a fault of Hearth", file=out)
        for one in self.unexplained[:EXAMPLES_MAX]:
            print("\n" + one, file=out)
        if self.other_texts:
            print(f"\nreasons that differ ({sum(self.other_texts.values())}), emulator | Hearth", file=out)
            for pair, count in self.other_texts.most_common(60):
                print(f"  {count:5} {pair[0]!r} | {pair[1]!r}\n        {self.examples[pair]}", file=out)
        if self.issues:
            print(f"\nissues that only one reports ({sum(self.issues.values())})", file=out)
            for pair, count in self.issues.most_common(40):
                print(f"  {count:5} {pair[0]}: {pair[1]}\n        {self.issue_examples[pair]}", file=out)


class Judge:
    def __init__(self, hearth_address: str, emulator_address: str, seed: int, report: Report) -> None:
        project = f"rules-{seed}-{int(time.time() * 1000) % 10**8:x}"
        self.hearth = Side(hearth_address, project)
        self.emulator = Side(emulator_address, project)
        self.seed = seed
        self.report = report

    def close(self) -> None:
        self.hearth.close()
        self.emulator.close()

    def judge(self, number: int) -> None:
        rules = RuleSets(self.seed, number).draw()
        report = self.report
        report.sets += 1
        ours, our_issues = self.hearth.load(rules.text)
        theirs, their_issues = self.emulator.load(rules.text)
        self._compare_issues(rules, number, our_issues, their_issues)
        if ours != theirs:
            said = "broken" if any(one.startswith("HTTP 5") for one in their_issues) else "refused"
            case = Case(rules, None, "compiles" if ours else "refused", "compiles" if theirs else said)
            if not self._explain(case):
                report.unexplained.append(
                    f"set {number}: Hearth {our_issues}\n  emulator {their_issues}\n{_numbered(rules.text)}"
                )
            return
        if not ours:
            report.sets_refused += 1
            return
        # Requests without effects, which do not wait for a connection, may be sent concurrently.
        waiting = [
            (place, asked, self._start(asked))
            for place, asked in enumerate(rules.asked)
            if not asked.touched and not asked.rest
        ]
        for place, asked, pending in waiting:
            self._finish(rules, number, place, asked, pending)
        for place, asked in enumerate(rules.asked):
            if asked.touched or asked.rest:
                self._finish(rules, number, place, asked, self._start(asked))

    def _start(self, asked: Asked) -> list[Any]:
        return [side.start(asked) for side in (self.hearth, self.emulator)]

    def _finish(self, rules: RuleValueSet, number: int, place: int, asked: Asked, pending: list[Any]) -> None:
        ours, theirs = (transport.finish(one) for transport, one in pending)
        report = self.report
        report.verdicts += 1
        report.kinds[rules.kind] += 1
        if asked.touched and (ours.code != DENIED or theirs.code != DENIED):
            sides = self.hearth, self.emulator
            for side, one in zip(sides, [side.start_restoring(list(asked.touched)) for side in sides], strict=True):
                side.finish_restoring(one, list(asked.touched))
        if ours.code != DENIED:
            report.allowed += 1
        if NO_ANSWER in (ours.code, theirs.code):
            report.unanswered += 1
            return
        if ours.code == theirs.code:
            if ours.code == DENIED:
                self._compare_texts(rules, number, place, asked, ours.message, theirs.message)
            return
        case = Case(rules, asked, ours.code, theirs.code, last_outcomes(ours.message), last_outcomes(theirs.message))
        if self._explain(case):
            return
        lines = sorted({*case.ours_by_line, *case.theirs_by_line})
        body = json.dumps(asked.body)
        report.unexplained.append(
            f"set {number} request {place} ({rules.kind}): {asked.method} by {asked.who}"
            f"{' over REST' if asked.rest else ''}\n"
            f"  {body[:1500]}\n"
            f"  Hearth   {ours.code} {ours.message!r}\n  emulator {theirs.code} {theirs.message!r}\n"
            + "\n".join(f"  L{line}: {rules.line(line)}" for line in lines)
            + ("\n" + _numbered(rules.text) if rules.kind == "matches" or not lines else "")
        )

    def _explain(self, case: Case) -> bool:
        for one in [*DIFFERENCES, *FAULTS]:
            if one.explains(case):
                self.report.hits[one.name] += 1
                return True
        return False

    def _compare_texts(self, rules: RuleValueSet, number: int, place: int, asked: Asked, ours: str, theirs: str) -> None:
        report = self.report
        if len(asked.body.get("writes", asked.body.get("documents", []))) > 1:
            # One server reports the first denied write only, the other one all.
            return
        mine, others = last_outcomes(ours), last_outcomes(theirs)
        # The emulator reports `allow update` when a document is created, and vice versa.
        for line in sorted(mine):
            report.texts += 1
            pair = _plain(others.get(line, "(nothing)")), _plain(mine.get(line, "(nothing)"))
            if pair[0] != pair[1]:
                report.other_texts[pair] += 1
                where = f"set {number} request {place} ({asked.method})"
                report.examples.setdefault(pair, f"{where}: {rules.line(line)[:300]}")

    def _compare_issues(self, rules: RuleValueSet, number: int, ours: list[str], theirs: list[str]) -> None:
        for who, said, others in (("Hearth", ours, theirs), ("emulator", theirs, ours)):
            rest = Counter(others)
            for one in said:
                if rest[one]:
                    rest[one] -= 1
                    continue
                match = re.match(r"(\w) (\d+): (.*)", one, re.S)
                severity, line, text = match.groups() if match else ("E", "0", one)
                pair = who, f"{severity} {_plain(text)}"
                self.report.issues[pair] += 1
                self.report.issue_examples.setdefault(pair, f"set {number}: {rules.line(int(line))[:200]}")


def _plain(text: str) -> str:
    """The message without the parts that differ from case to case."""
    text = re.sub(r"Argument: \[.*\]\.?", "Argument: […]", text, flags=re.S)
    text = re.sub(r"\[-?[\w.]+\]", "[…]", text) if "Index" in text or "range" in text else text
    return text


def _numbered(text: str) -> str:
    return "\n".join(f"  {number:3} {line}" for number, line in enumerate(text.split("\n"), 1))


def compare(hearth_address: str, emulator_address: str, seed: int, verdicts: int, first: int = 0) -> Report:
    report = Report()
    judge = Judge(hearth_address, emulator_address, seed, report)
    number = first
    while report.verdicts < verdicts:
        judge.judge(number)
        number += 1
    judge.close()
    return report


def table() -> str:
    lines = ["| difference | emulator | Hearth | because |", "| --- | --- | --- | --- |"]
    lines += [f"| {one.name} | {one.theirs} | {one.ours} | {one.source} |" for one in DIFFERENCES]
    return "\n".join(lines)


def main() -> int:
    description = "Compares verdicts of security rules"
    parser = argparse.ArgumentParser(prog="differential.rule_verdicts", description=description)
    parser.add_argument("--hearth", help="host:port of the server to judge; started from HEARTH_BINARY if absent")
    parser.add_argument("--emulator", help="host:port of Google's emulator; started if absent")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("HEARTH_TEST_SEED", "1")))
    parser.add_argument("--verdicts", type=int, default=int(os.environ.get("HEARTH_RULE_VERDICTS", "20000")))
    parser.add_argument("--first", type=int, default=0, help="begin with this rule set")
    parser.add_argument("--set", type=int, help="judge this one rule set only, and show it")
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
        began = time.monotonic()
        if arguments.set is not None:
            print(_numbered(RuleSets(arguments.seed, arguments.set).draw().text))
            report = compare(judged, reference, arguments.seed, 1, arguments.set)
        else:
            report = compare(judged, reference, arguments.seed, arguments.verdicts, arguments.first)
        report.write(sys.stdout, time.monotonic() - began)
    return 1 if report.unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
