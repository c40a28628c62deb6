"""Every known difference between Hearth's verdicts and those of Google's emulator, with the reason for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from .rule_sets import Asked, RuleValueSet


@dataclass(frozen=True)
class Case:
    """A difference between verdicts; without a request it concerns whether the rules compile."""

    rules: RuleValueSet
    asked: Asked | None
    ours: str
    theirs: str
    #: The reason why the rules of a line did not allow it.
    ours_by_line: dict[int, str] = field(default_factory=dict)
    theirs_by_line: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Difference:
    name: str
    theirs: str
    ours: str
    #: The source of the decision.
    source: str
    explains: Callable[[Case], bool]


def _is_denied(code: str) -> bool:
    return code == "PERMISSION_DENIED"


def _filters(node: object) -> list[dict[str, object]]:
    """The field filters of a query, at any depth."""
    found: list[dict[str, object]] = []
    if isinstance(node, dict):
        if isinstance(node.get("fieldFilter"), dict):
            found.append(node["fieldFilter"])
        for member in node.values():
            found += _filters(member)
    elif isinstance(node, list):
        for member in node:
            found += _filters(member)
    return found


def _by_name(case: Case) -> bool:
    return case.asked is not None and any(
        one["field"] == {"fieldPath": "__name__"} and one["op"] == "EQUAL" for one in _filters(case.asked.body)
    )


def _lines(case: Case) -> str:
    """The rules with different results."""
    lines = {*case.ours_by_line, *case.theirs_by_line}
    if not lines:
        return case.rules.text
    return "\n".join(case.rules.line(line) for line in sorted(lines))


def _compares_differences(case: Case) -> bool:
    return bool(re.search(r"\.diff\(.*(==|!=| in ).*\.diff\(", _lines(case)))


def _misses(case: Case) -> bool:
    """The emulator failed to get a document, and Hearth did not."""
    failed = any("Service call error. Function: [get" in text for text in case.theirs_by_line.values())
    return failed and not any("Service call error" in text for text in case.ours_by_line.values())


def _fails_otherwise(case: Case) -> bool:
    """One write is denied, and the precondition of another fails."""
    writes = case.asked.body.get("writes", []) if case.asked else []
    fails = case.theirs in ("NOT_FOUND", "ALREADY_EXISTS", "FAILED_PRECONDITION")
    return _is_denied(case.ours) and fails and len(writes) > 1 and any("currentDocument" in one for one in writes)


def _compares_other_numbers(case: Case) -> bool:
    """A bound of one kind of number, and a number of the other kind in the rule."""
    if not _is_denied(case.theirs) or _is_denied(case.ours) or case.asked is None:
        return False
    kinds = {kind for one in _filters(case.asked.body) for kind in one["value"]}  # type: ignore[attr-defined]
    return "doubleValue" in kinds and re.search(r"[<>=] ?\d+\b(?!\.)|\b\d+ [<>=!]", _lines(case)) is not None


def _contains_other_numbers(case: Case) -> bool:
    """A list's element of one kind of number, and the other kind in the rule."""
    if not _is_denied(case.ours) or _is_denied(case.theirs) or case.asked is None:
        return False
    operators = {one["op"] for one in _filters(case.asked.body)}
    return bool(operators & {"ARRAY_CONTAINS", "ARRAY_CONTAINS_ANY"}) and bool(
        re.search(r"\d\.\d", _lines(case)) and re.search(r"hasAny| in ", _lines(case))
    )


def _writes_one_document_twice(case: Case) -> bool:
    if case.theirs != "INVALID_ARGUMENT" or case.asked is None:
        return False
    names = [one.get("delete") or one.get("update", {}).get("name") for one in case.asked.body.get("writes", [])]
    return len(set(names)) < len(names)


_BELOW_A_GLOB = re.compile(r"match \S*=\*\*\}/\S+ \{\n(allow [^\n]*\n)*match ")


def _is_below_a_glob(case: Case) -> bool:
    return case.rules.kind == "matches" and bool(_BELOW_A_GLOB.search(case.rules.text))


def _write_looks_at_many(case: Case) -> bool:
    """One of several writes reads more than ten documents, and all together at most twenty."""
    many = case.asked is not None and len(case.asked.body.get("writes", case.asked.body.get("documents", []))) > 1
    over = any("Service call error. Function: [exists" in text for text in case.ours_by_line.values())
    ten_or_less = not any(line.count("exists") > 10 for line in _lines(case).split("\n"))
    return many and over and not ten_or_less and not _is_denied(case.theirs)


_IS_SET = re.compile(r" is (set|list)\b")


def _asks_for_a_set(case: Case) -> bool:
    return bool(_IS_SET.search(_lines(case))) and ("toSet" in _lines(case) or "Keys()" in _lines(case))


def _is_invalid(case: Case) -> bool:
    return case.ours == "INVALID_ARGUMENT" and _is_denied(case.theirs)


def _query_looks_at_many(case: Case) -> bool:
    is_query = case.asked is not None and case.asked.method in ("RunQuery", "RunAggregationQuery", "ListDocuments")
    over = any("Service call error. Function: [exists" in text for text in case.ours_by_line.values())
    return is_query and over and not _is_denied(case.theirs)


DIFFERENCES: list[Difference] = [
    Difference(
        "a query for one name",
        "shows rules the document of that name",
        "shows them what the query says, its name and no field",
        "rules 12: a query is never judged by what is stored [D]",
        _by_name,
    ),
    Difference(
        "get of a missing document",
        "fails, even where it is compared with null",
        "gives null",
        "rules 10: the documentation says null [D]",
        _misses,
    ),
    Difference(
        "documents that a query's rules look at",
        "refuses more than 20",
        "refuses more than 10",
        "rules 13: 10 for single-document requests and query requests [D]",
        _query_looks_at_many,
    ),
    Difference(
        "documents that one write of a batch looks at",
        "limits those of the whole batch, to 20",
        "limits those of each write to 10, too",
        "rules 13: `The previous limit of 10 also applies to each operation` [D]",
        _write_looks_at_many,
    ),
    Difference(
        "the type of a set",
        "says that a set is none",
        "says that it is one",
        "rules 6: `is set` is documented [D]",
        _asks_for_a_set,
    ),
    Difference(
        "integers and bounds that are none",
        "can't compare a bound of 5.5 with an integer",
        "compares numbers as numbers",
        "rules 12.4: true if it holds for every value that the filter finds [D]",
        _compares_other_numbers,
    ),
    Difference(
        "an invalid query",
        "judges it",
        "INVALID_ARGUMENT: nothing is judged that cannot be run",
        "1.5",
        _is_invalid,
    ),
    Difference(
        "a match below a recursive wildcard and more",
        "finds nothing below `match /{w=**}/s {`, and too much below `match /{w=**}/{x} {`",
        "takes the path of both together",
        "rules 3.1: nested paths concatenate [D]; written as one path the emulator finds it, too",
        _is_below_a_glob,
    ),
    Difference(
        "a batch that is denied and fails",
        "tells of the precondition that fails before it has judged all writes",
        "judges all writes before any precondition",
        "rules 11: rules are evaluated before preconditions; who is denied learns nothing of what is stored",
        _fails_otherwise,
    ),
    Difference(
        "equality of map differences",
        "says that no two results of `diff` are equal",
        "compares what they say",
        "rules 6.1: maps and sets are equal by content; differences are no other [C]",
        _compares_differences,
    ),
    Difference(
        "elements of lists that a query asks for",
        "takes an array-contains of 5 for a proof that 5.0 is in the list",
        "takes it for one of 5 only, as `in` of a list tells the types apart",
        "rules 12.4: true if it holds for every value that the filter finds [D]",
        _contains_other_numbers,
    ),
    Difference(
        "a document written with and without an update mask in one commit",
        "refuses it before the rules are asked, with an error of its storage",
        "asks the rules",
        "rules 11: rules are evaluated before anything else is done",
        _writes_one_document_twice,
    ),
    Difference(
        "the emulator breaks",
        "answers UNKNOWN without a text, from an exception of its own",
        "denies by an error of the rule",
        "rules 5: an error of an expression is a value",
        lambda case: case.theirs == "broken" or (case.theirs == "UNKNOWN" and _is_denied(case.ours)),
    ),
]


FAULTS: list[Difference] = []
