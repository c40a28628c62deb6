"""Every known difference between Hearth and Google's emulator, with the reason for it.

A rule matches as narrowly as it can: the shape of the request and both outcomes. `source` names the
chapter of the semantics document that decides for Hearth's way, or the observation behind it.
"""

from __future__ import annotations

from typing import Any

from .request import Json
from .rules import Case, Note, Rule, filters_of, members, outcome, query_of, written_names

STREAMS = ("RunQuery", "RunAggregationQuery", "BatchGetDocuments")
COMMITS = ("Commit", "BatchWrite")
WRITERS = (*COMMITS, "CreateDocument", "UpdateDocument", "DeleteDocument")


# Shapes of good answers


def _end_mark(case: Case) -> bool:
    return case.both_good and _each(case, lambda entry: entry.pop("done", None) is not None)


def _each(case: Case, change: Any) -> bool:
    """Applies `change` to every message of both streams; says whether any changed."""
    if case.request.method not in STREAMS or not isinstance(case.hearth.body, list):
        return False
    return any([change(entry) for answer in (case.hearth, case.emulator) for entry in answer.body])


def _skipped(case: Case) -> bool:
    """Takes the number of skipped results out, after seeing that Hearth's is right."""
    offset = query_of(case.sent).get("offset", 0)
    if case.request.method != "RunQuery" or not case.both_good or not offset:
        return False
    found = [entry for entry in case.hearth.body if "document" in entry]
    skipped = sum(entry.get("skippedResults", 0) for entry in case.hearth.body)
    if skipped > offset or found and skipped != offset:
        return False
    for answer in (case.hearth, case.emulator):
        for entry in answer.body:
            entry.pop("skippedResults", None)
        if any("document" in entry for entry in answer.body):
            answer.body = [entry for entry in answer.body if "document" in entry or "transaction" in entry]
    return True


def _transaction_message(case: Case) -> bool:
    """The id of a new transaction: alone in the first message, or together with the first result."""
    if case.request.method not in STREAMS or not case.both_good or "newTransaction" not in case.sent:
        return False
    for answer in (case.hearth, case.emulator):
        first, *others = answer.body or [{}]
        if first.pop("transaction", None) != "present":
            return False
        answer.body = [entry for entry in (first, *others) if entry]
    return True


def _batch_get_order(case: Case) -> bool:
    if case.request.method != "BatchGetDocuments" or not case.both_good:
        return False
    found = [("missing" in entry) for entry in case.hearth.body if "missing" in entry or "found" in entry]
    if found != sorted(found):
        return False
    for answer in (case.hearth, case.emulator):
        answer.body.sort(key=lambda entry: entry.get("missing") or entry.get("found", {}).get("name", ""))
    return True


def _full_last_page(case: Case) -> bool:
    if case.request.method not in ("ListDocuments", "ListCollectionIds") or not case.both_good:
        return False
    if "nextPageToken" in case.hearth.body or "nextPageToken" not in case.emulator.body:
        return False
    listed = case.emulator.body.get("documents") or case.emulator.body.get("collectionIds") or []
    if len(listed) != case.sent.get("pageSize"):
        return False
    del case.emulator.body["nextPageToken"]
    return True


def _empty_commit(case: Case) -> bool:
    if case.request.method != "Commit" or not case.both_good or case.sent.get("writes"):
        return False
    if case.emulator.body or case.hearth.body.keys() != {"commitTime"}:
        return False
    case.agree()
    return True


def _verified_missing(case: Case) -> bool:
    """A verify of a document that does not exist: the emulator makes up an update time."""
    if case.request.method not in COMMITS or not case.both_good:
        return False
    changed = False
    results = zip(case.sent["writes"], case.hearth.body["writeResults"], case.emulator.body["writeResults"], strict=False)
    for write, hearth, emulator in results:
        if "verify" in write and "updateTime" in emulator and "updateTime" not in hearth:
            del emulator["updateTime"]
            changed = True
    return changed


def _merged_results(case: Case) -> bool:
    """Several writes to one document: the emulator gives each the final state's update time."""
    names = written_names(case.sent)
    if case.request.method != "Commit" or not case.both_good or len(names) == len(set(names)):
        return False
    for answer in (case.hearth, case.emulator):
        for name, result in zip(names, answer.body["writeResults"], strict=False):
            if names.count(name) > 1:
                result.pop("updateTime", None)
    return True


def _empty_projection(case: Case) -> bool:
    """Present but empty: all fields here, none there. Names and times still have to agree."""
    if query_of(case.sent).get("select") != {} or case.request.method != "RunQuery" or not case.both_good:
        return False
    return _each(case, lambda entry: entry.get("document", {}).pop("fields", None) is not None)


def _error_in_array(case: Case) -> bool:
    if case.request.method not in STREAMS or case.hearth.code == "OK" or case.hearth.code != case.emulator.code:
        return False
    if (case.emulator.shape, case.hearth.shape) != ("object", "array"):
        return False
    case.hearth.shape = "object"
    return True


def _close(one: Json, other: Json) -> bool:
    """Doubles that differ by no more than the order of additions can make them."""
    if not (one[0] == other[0] == "double"):
        return False
    left, right = float(one[1]), float(other[1])
    return abs(left - right) <= 4e-15 * max(abs(left), abs(right))


def _sums(case: Case) -> bool:
    """Sums and averages of doubles whose last bits depend on the order of addition."""
    if case.request.method != "RunAggregationQuery" or not case.both_good:
        return False
    changed = False
    pairs = zip(members(case.hearth.body, "aggregateFields"), members(case.emulator.body, "aggregateFields"), strict=False)
    for hearth, emulator in pairs:
        for alias in hearth.keys() & emulator.keys():
            if hearth[alias] != emulator[alias] and _close(hearth[alias], emulator[alias]):
                hearth[alias] = emulator[alias]
                changed = True
    return changed


# Shapes of requests


def _database(case: Case) -> str:
    for key in ("database", "parent", "name"):
        if key in case.sent:
            return "/".join(case.sent[key].split("/")[:4])
    return ""


def _foreign_name(case: Case) -> bool:
    names = [*written_names(case.sent), *case.sent.get("documents", [])]
    return any(name and not name.startswith(_database(case) + "/") for name in names)


def _writes_to_one_document(case: Case) -> bool:
    names = written_names(case.sent)
    return len(names) > len(set(names))


def _name_in_mask_or_transform(case: Case) -> bool:
    paths = [path for mask in members(case.sent, "updateMask") for path in mask.get("fieldPaths", [])]
    paths += members(case.sent, "fieldPath")
    return any(path.split(".")[0].strip("`") == "__name__" for path in paths)


def _array_in_transform(case: Case) -> bool:
    lists = [*members(case.sent, "appendMissingElements"), *members(case.sent, "removeAllFromArray")]
    return any("arrayValue" in value for entry in lists for value in entry.get("values", []))


def _nan_negated(case: Case) -> bool:
    nan = {"doubleValue": "NaN"}
    for condition in filters_of(case.sent):
        value = condition.get("value", {})
        if condition.get("op") == "NOT_EQUAL" and value == nan:
            return True
        if condition.get("op") == "NOT_IN" and nan in value.get("arrayValue", {}).get("values", []):
            return True
    return False


def _without_nan_results(case: Case) -> bool:
    """NOT_EQUAL and NOT_IN with NaN: the emulator's results are Hearth's and those whose field is NaN."""
    if not case.both_good or not _nan_negated(case):
        return False
    case.agree()
    return True


def _first_order_is_name_descending(case: Case) -> bool:
    order = (query_of(case.sent).get("orderBy") or [{}])[0]
    text = case.sent.get("orderBy")
    listed = isinstance(text, str) and text.split(",")[0].lower().split()[0] == "__name__"
    return listed or order.get("field", {}).get("fieldPath") == "__name__"


RULES: list[Rule] = [
    Rule(
        "end mark of a query",
        "sends `done: true` with the last message",
        "does not; the end of the stream says it",
        "1.4",
        _end_mark,
    ),
    Rule(
        "number of skipped results",
        "puts `skippedResults` on some of the documents",
        "sends it in a first message without document, as production does",
        "1.4",
        _skipped,
    ),
    Rule(
        "id of a new transaction",
        "sends it alone in the first message",
        "may send it with the first result",
        "8.3, 12.1",
        _transaction_message,
    ),
    Rule(
        "shape of a stream's error over REST",
        "answers the error object",
        "answers an array with the error object, as production does",
        "1.4",
        _error_in_array,
    ),
    Rule(
        "order of BatchGetDocuments",
        "answers in the order of the request",
        "sends what was found first, then what is missing",
        "8.3; clients §6",
        _batch_get_order,
    ),
    Rule(
        "token after a full last page",
        "gives a token that leads to an empty page",
        "looks one ahead and gives none",
        "8.4",
        _full_last_page,
    ),
    Rule("commit without writes", "answers no commit time", "answers one", "7.1", _empty_commit),
    Rule(
        "verify of a missing document",
        "answers an update time that no document has",
        "answers none",
        "6.10",
        _verified_missing,
    ),
    Rule(
        "results of several writes to one document",
        "reports the document's final state for each of them",
        "reports each write by itself",
        "6.7; observed: a write followed by a delete has no update time, a delete followed by a write has one",
        _merged_results,
    ),
    Rule(
        "empty projection",
        "returns names only for `select: {}`",
        "returns all fields",
        "9.9; clients §9",
        _empty_projection,
    ),
    Rule("last bits of sums", "adds doubles in its own order", "adds exactly", "11", _sums),
    Rule(
        "NaN in NOT_EQUAL and NOT_IN",
        "keeps documents whose field is NaN",
        "leaves them out",
        "9.4",
        _without_nan_results,
    ),
    Rule(
        "conditions on several writes to one document",
        "refuses combinations of conditions without looking at the documents (`Cannot delete then update …`)",
        "applies the writes in order and judges each condition by the state before it",
        "6.7",
        outcome(
            "INVALID_ARGUMENT",
            "OK|ALREADY_EXISTS|NOT_FOUND|FAILED_PRECONDITION",
            text=r"^Cannot (\w+ then \w+ an entity in the same request|collapse mutations)",
            methods=COMMITS,
            when=_writes_to_one_document,
        ),
    ),
    Rule(
        "verify and write of one document in one commit",
        "refuses it",
        "judges the condition by the state at that point",
        "6.7; observed",
        outcome(
            "INVALID_ARGUMENT",
            "OK|ALREADY_EXISTS|NOT_FOUND|FAILED_PRECONDITION",
            text="^the same document cannot be (verified|written)",
            methods=("Commit",),
            when=_writes_to_one_document,
        ),
    ),
    Rule(
        "condition on an update time later than the stored one",
        "INVALID_ARGUMENT `Invalid base version, it is greater than the stored version`",
        "FAILED_PRECONDITION, like any other mismatch",
        "6.4",
        outcome(
            "INVALID_ARGUMENT",
            "FAILED_PRECONDITION",
            text="^Invalid base version, it is greater than the stored version",
            methods=WRITERS,
        ),
    ),
    Rule(
        "names of another database in a request",
        "writes and reads there",
        "INVALID_ARGUMENT, as production",
        "2.3",
        outcome("OK|NOT_FOUND", "INVALID_ARGUMENT", methods=("Commit", "BatchWrite", "BatchGetDocuments"), when=_foreign_name),
    ),
    Rule(
        "`__name__` in an update mask or transform",
        "accepts it; a transform is even stored",
        "INVALID_ARGUMENT: it is a reserved field name",
        "3",
        outcome("OK", "INVALID_ARGUMENT", methods=WRITERS, when=_name_in_mask_or_transform),
    ),
    Rule(
        "arrays as operands of array transforms",
        "stores an array in an array",
        "INVALID_ARGUMENT, as for any value",
        "4.7",
        outcome("OK", "INVALID_ARGUMENT", methods=COMMITS, when=_array_in_transform),
    ),
    Rule(
        "order by name alone, descending",
        "FAILED_PRECONDITION `Firestore does not support descending key scans`",
        "serves it, as production",
        "9.5",
        outcome("FAILED_PRECONDITION", "OK", text="descending key scans", when=_first_order_is_name_descending),
    ),
    Rule(
        "kindless order by name, descending",
        "INVALID_ARGUMENT `kind is required for all orders except __key__ ascending`",
        "serves it, as production",
        "9.2, 20.2",
        outcome("INVALID_ARGUMENT", "OK", text="^kind is required for all orders", when=_first_order_is_name_descending),
    ),
    Rule(
        "collection group below a document in a transaction or at a read time",
        "INVALID_ARGUMENT `collection group queries are only allowed at the root parent`",
        "serves it",
        "9.2",
        outcome("INVALID_ARGUMENT", "OK", text="^collection group queries are only allowed at the root parent"),
    ),
    Rule(
        "more than five aggregations",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "5, 11",
        outcome("UNKNOWN", "INVALID_ARGUMENT", methods=("RunAggregationQuery",)),
    ),
    Rule(
        "count up to zero",
        "answers 0",
        "INVALID_ARGUMENT: `up_to` is at least 1",
        "11",
        outcome(
            "OK",
            "INVALID_ARGUMENT",
            methods=("RunAggregationQuery",),
            when=lambda case: "0" in members(case.sent, "upTo"),
        ),
    ),
    Rule(
        "second page of an ordered list",
        "UNKNOWN",
        "the page",
        "8.4",
        outcome("UNKNOWN", "OK", methods=("ListDocuments",), when=lambda case: "orderBy" in case.sent),
    ),
    Rule(
        "use of a transaction that has ended",
        "INVALID_ARGUMENT `Transaction is invalid or closed.`",
        "ABORTED with the text on which clients run the transaction again",
        "12.5",
        outcome("INVALID_ARGUMENT", "ABORTED", text="^Transaction is invalid or closed"),
    ),
    Rule(
        "request without an answer",
        "never answers",
        "answers",
        "7.3; observed",
        outcome("NO_ANSWER", "OK|INVALID_ARGUMENT|NOT_FOUND|FAILED_PRECONDITION|ALREADY_EXISTS"),
    ),
]

NOTES: list[Note] = [
    Note("PartitionQuery", "UNIMPLEMENTED", "served", "9.12"),
    Note("explain", "ignores `explainOptions`", "answers plan and statistics", "9.13"),
    Note("times in query strings", "misreads `readTime` and `currentDocument.updateTime`", "reads them", "1.2"),
    Note("a GET with `transaction`", "never answers", "answers", "1.2"),
    Note("REST over HTTP/2", "415: over HTTP/2 it speaks gRPC only", "served on the same port", "observed"),
    Note("encoded parentheses before a custom verb", "404 for `%28default%29/documents:commit`", "served", "1.2; observed"),
    Note("spaces at the end of a path", "cuts them off", "keeps them", "observed"),
    Note("-0.0 in a JSON body", "loses the sign", "keeps it", "1.3; observed"),
    Note("500 transforms on one document", "not enforced", "INVALID_ARGUMENT", "5"),
    Note("requests over 4 MiB by gRPC", "RESOURCE_EXHAUSTED", "served up to 11 MiB", "5"),
    Note("listing missing documents or without collection in a transaction", "UNKNOWN", "served", "observed"),
    Note("32 clients that increment one counter in transactions", "locks time out; some give up", "all get through", "12.3"),
]
