"""Shapes of requests in which a difference is known: each function returns whether a request has it."""

from __future__ import annotations

import re

from .request import Json
from .rest import http_request
from .rules import Case, filters_of, members, query_of, written_names

# Any time after this one is in the future, whenever the tests run.
FUTURE = "2090"


def long_address(case: Case) -> bool:
    """Whether the request line is longer than the emulator reads."""
    if not case.request.rest:
        return False
    verb, target, _ = http_request(case.request.method, case.sent)
    return len(f"{verb} {target} HTTP/1.1") > 4096


def unsatisfiable(case: Case) -> bool:
    return never_satisfied(case.sent)


def never_satisfied(sent: Json) -> bool:
    """Whether the filter contains a comparison with null or NaN: no document can satisfy it."""

    def nothing(value: Json) -> bool:
        return "nullValue" in value or value == {"doubleValue": "NaN"}

    values = [condition.get("value", {}) for condition in filters_of(sent)]
    return any(nothing(v) or any(nothing(m) for m in v.get("arrayValue", {}).get("values", [])) for v in values)


def repeated(case: Case) -> bool:
    """Whether two conditions are on the same field, or a value occurs twice in a list: they may be unsatisfiable."""
    conditions = [condition.get("field") for condition in filters_of(case.sent)]
    lists = [condition.get("value", {}).get("arrayValue", {}).get("values", []) for condition in filters_of(case.sent)]
    return any(len(entries) > len({repr(entry) for entry in entries}) for entries in (conditions, *lists))


def future(message: Json) -> bool:
    times = [time for time in members(message, "updateTime") if isinstance(time, str)]
    return any(time > FUTURE for time in times)


def _database(case: Case) -> str:
    for key in ("database", "parent", "name"):
        if key in case.sent:
            return "/".join(case.sent[key].split("/")[:4])
    return ""


def foreign_name(case: Case) -> bool:
    names = [*written_names(case.sent), *case.sent.get("documents", [])]
    return any(name and not name.startswith(_database(case) + "/") for name in names)


def writes_to_one_document(case: Case) -> bool:
    names = written_names(case.sent)
    return len(names) > len(set(names))


def name_in_path(case: Case) -> bool:
    return any("__name__" in path for path in _paths(case))


def _paths(case: Case) -> list[str]:
    lists = [path for paths in members(case.sent, "fieldPaths") for path in paths]
    return [*lists, *members(case.sent, "fieldPath"), *members(case.sent, "distanceResultField")]


def path_of_1500_bytes(case: Case) -> bool:
    return any(len(path.encode()) == 1500 for path in _paths(case))


def outside_the_mask(case: Case) -> bool:
    """A masked write contains a field that is not in the mask; Hearth's error is about that field."""
    complaint = re.search(r'[Pp]roperty "?(.+?)"? (?:contains|is longer)', case.hearth.message)
    for write in [*case.sent.get("writes", []), case.sent]:
        fields = (write.get("update") or write.get("document") or {}).get("fields", {})
        if "updateMask" in write:
            roots = {path.split(".")[0].strip("`") for path in write["updateMask"].get("fieldPaths", [])}
            outside = fields.keys() - roots
            if outside and (complaint is None or complaint[1] in outside):
                return True
    return False


def all_below_a_document(case: Case) -> bool:
    """Whether the query is over several collections below a document."""
    sources = query_of(case.sent).get("from", [])
    below = not case.sent.get("parent", "").endswith("/documents")
    return below and not any(source.get("collectionId") and not source.get("allDescendants") for source in sources)


def array_transform(case: Case) -> bool:
    return any(True for key in ("appendMissingElements", "removeAllFromArray") for _ in members(case.sent, key))


def nan_negated(case: Case) -> bool:
    nan = {"doubleValue": "NaN"}
    for condition in filters_of(case.sent):
        value = condition.get("value", {})
        if condition.get("op") == "NOT_EQUAL" and value == nan:
            return True
        if condition.get("op") == "NOT_IN" and nan in value.get("arrayValue", {}).get("values", []):
            return True
    return False


def first_order_is_name_descending(case: Case) -> bool:
    order = (query_of(case.sent).get("orderBy") or [{}])[0]
    text = case.sent.get("orderBy")
    listed = isinstance(text, str) and text.split(",")[0].lower().split()[0].strip("`") == "__name__"
    return listed or order.get("field", {}).get("fieldPath", "").strip("`") == "__name__"


def array_operator_on_20_elements(case: Case) -> bool:
    return any(
        condition.get("op", "").startswith("ARRAY") and condition["field"]["fieldPath"].count(".") == 19
        for condition in filters_of(case.sent)
    )
