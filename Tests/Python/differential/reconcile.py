"""How each known difference appears in a request and its two answers, and how it is removed from them.

Each function returns whether its difference was present. The self-test plants faults in recorded answers, and fails if
one of these functions accepts a fault as its difference.
"""

from __future__ import annotations

import math
import re
from typing import Any

from .request import Json
from .rules import Case, filters_of, members, query_of, written_names
from .shapes import future, nan_negated, unsatisfiable

STREAMS = ("RunQuery", "RunAggregationQuery", "BatchGetDocuments")
COMMITS = ("Commit", "BatchWrite")
# The emulator's indexes truncate values at this size.
INDEXED_BYTES_MAX = 1500


# Shapes of good answers


def end_mark(case: Case) -> bool:
    return case.both_good and _each(case, lambda entry: entry.pop("done", None) is not None)


def _each(case: Case, change: Any) -> bool:
    """Applies `change` to every message of both streams; returns whether any changed."""
    if case.request.method not in STREAMS or not isinstance(case.hearth.body, list):
        return False
    return any([change(entry) for answer in (case.hearth, case.emulator) for entry in answer.body])


def skipped(case: Case) -> bool:
    """Removes the number of skipped results, after checking Hearth's."""
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


def transaction_message(case: Case) -> bool:
    """The id of a new transaction: alone in the first message, or together with the first result."""
    if case.request.method not in STREAMS or not case.both_good or "newTransaction" not in case.sent:
        return False
    for answer in (case.hearth, case.emulator):
        first, *others = answer.body or [{}]
        if first.pop("transaction", None) != "present":
            return False
        if first.keys() == {"readTime"}:
            first.clear()
        answer.body = [entry for entry in (first, *others) if entry]
    return True


def batch_get_order(case: Case) -> bool:
    if case.request.method != "BatchGetDocuments" or not case.both_good:
        return False
    found = [("missing" in entry) for entry in case.hearth.body if "missing" in entry or "found" in entry]
    if found != sorted(found):
        return False
    for answer in (case.hearth, case.emulator):
        answer.body.sort(key=lambda entry: entry.get("missing") or entry.get("found", {}).get("name", ""))
    return True


def full_last_page(case: Case) -> bool:
    if case.request.method not in ("ListDocuments", "ListCollectionIds") or not case.both_good:
        return False
    if "nextPageToken" in case.hearth.body or "nextPageToken" not in case.emulator.body:
        return False
    listed = case.emulator.body.get("documents") or case.emulator.body.get("collectionIds") or []
    if len(listed) != case.sent.get("pageSize"):
        return False
    del case.emulator.body["nextPageToken"]
    return True


def page_size(case: Case) -> bool:
    """The emulator's page ends at its own limit, and Hearth's begins with the same documents."""
    if case.request.method != "ListDocuments" or not case.both_good or "nextPageToken" not in case.emulator.body:
        return False
    wanted = case.sent.get("pageSize", 0)
    shown = case.emulator.body.get("documents", [])
    if len(shown) != (30 if wanted == 0 else 150) or 0 < wanted <= 150:
        return False
    if not _begins_with(case.hearth.body.get("documents", []), shown):
        return False
    case.agree()
    return True


def _begins_with(documents: list[Json], shown: list[Json]) -> bool:
    """Whether the longer list begins with the shorter one; unusual values have an order of their own."""
    longer, shorter = ([one for one in some if not _odd(one)] for some in (documents, shown))
    known = {document["name"]: document for document in documents}
    same = all(known.get(one["name"], one) == one for one in shown)
    return same and longer[: len(shorter)] == shorter


def empty_commit(case: Case) -> bool:
    if case.request.method != "Commit" or not case.both_good or case.sent.get("writes"):
        return False
    if case.emulator.body or case.hearth.body.keys() != {"commitTime"}:
        return False
    case.agree()
    return True


def verified_missing(case: Case) -> bool:
    """A verify of a document that does not exist: the emulator invents an update time."""
    if case.request.method not in COMMITS or not case.both_good:
        return False
    changed = False
    results = zip(
        case.sent["writes"], case.hearth.body["writeResults"], case.emulator.body["writeResults"], strict=False
    )
    for write, hearth, emulator in results:
        if "verify" in write and "updateTime" in emulator and "updateTime" not in hearth:
            del emulator["updateTime"]
            changed = True
    return changed


def merged_results(case: Case) -> bool:
    """Several writes to one document: the emulator returns the final state's update time for each."""
    names = written_names(case.sent)
    if case.request.method != "Commit" or not case.both_good or len(names) == len(set(names)):
        return False
    for answer in (case.hearth, case.emulator):
        for name, result in zip(names, answer.body["writeResults"], strict=False):
            if names.count(name) > 1:
                result.pop("updateTime", None)
    return True


def empty_projection(case: Case) -> bool:
    """Present but empty: all fields in Hearth, none in the emulator. Names and times must still be equal."""
    if query_of(case.sent).get("select") != {} or case.request.method != "RunQuery" or not case.both_good:
        return False
    return _each(case, lambda entry: entry.get("document", {}).pop("fields", None) is not None)


def error_in_array(case: Case) -> bool:
    if case.request.method not in STREAMS or case.hearth.code == "OK" or case.hearth.code != case.emulator.code:
        return False
    if (case.emulator.shape, case.hearth.shape) != ("object", "array"):
        return False
    case.hearth.shape = "object"
    return True


def _close(one: Json, other: Json, lost: float = 0) -> bool:
    """Doubles whose difference is explained by the order of additions."""
    if not (one[0] == other[0] == "double"):
        return False
    left, right = float(one[1]), float(other[1])
    return left == right or abs(left - right) <= max(lost, 4e-15 * max(abs(left), abs(right)))


def sums(case: Case) -> bool:
    """Sums and averages of doubles, which depend on the order of addition.

    Where numbers of about 2^63 cancel out, the emulator's sum loses up to half of their last bit for each document.
    (PlannerTests compares Hearth's sums with an independent exact sum.)
    """
    if case.request.method != "RunAggregationQuery" or not case.both_good:
        return False
    changed = False
    pairs = zip(
        members(case.hearth.body, "aggregateFields"), members(case.emulator.body, "aggregateFields"), strict=False
    )
    for hearth, emulator in pairs:
        for alias in hearth.keys() & emulator.keys():
            if hearth[alias] != emulator[alias] and _close(hearth[alias], emulator[alias], 200 * 2.0**10):
                hearth[alias] = emulator[alias]
                changed = True
    return changed


def show_missing(case: Case) -> bool:
    """With `showMissing` the emulator ignores the mask and adds an update time to missing documents."""
    if case.request.method != "ListDocuments" or not case.both_good or not case.sent.get("showMissing"):
        return False
    hearth, emulator = case.hearth.body.get("documents", []), case.emulator.body.get("documents", [])
    changed = False
    for one, other in zip(hearth, emulator, strict=False):
        if "createTime" not in other and "createTime" not in one and "updateTime" not in one:
            changed = other.pop("updateTime", None) is not None or changed
        if "mask" in case.sent and _part_of(one.get("fields", {}), other.get("fields", {})):
            one.pop("fields", None)
            other.pop("fields", None)
            changed = True
    return changed


def _part_of(fields: Json, whole: Json) -> bool:
    """Whether the first fields are a subset of the second ones, at any depth of maps."""
    for name, value in fields.items():
        other = whole.get(name)
        if value != other and not (other and value[0] == other[0] == "map" and _part_of(value[1], other[1])):
            return False
    return True


def distance_field(case: Case) -> bool:
    """The emulator interprets the path of the distance as a literal field name."""
    path = query_of(case.sent).get("findNearest", {}).get("distanceResultField", "")
    if not case.both_good or case.request.method != "RunQuery" or not re.search(r"[.`]", path):
        return False
    names = [part.strip("`") for part in path.split(".")]
    for entry in case.emulator.body:
        fields = entry.get("document", {}).get("fields", {})
        if path in fields:
            # Only the last name of the path is corrected: with `m.d`, the map `m` may contain more.
            distance = fields.pop(path)
            holder = fields
            for name in names[:-1]:
                member = holder.get(name)
                if member is None or member[0] != "map":
                    member = holder[name] = ["map", {}]
                holder = member[1]
            holder[names[-1]] = distance
    if "select" in query_of(case.sent):
        # The emulator does not find its own field when the path is selected.
        for one, other in zip(case.hearth.body, case.emulator.body, strict=False):
            _forget_distance(one.get("document", {}), other.get("document", {}), names)
    return True


def _forget_distance(document: Json, other: Json, names: list[str]) -> None:
    """Removes the distance from Hearth's document if the emulator's lacks it, and the maps that become empty."""
    here, there = document.get("fields", {}), other.get("fields", {})
    if _forget(here, there, names) and not here:
        del document["fields"]


def _forget(here: Json, there: Json, names: list[str]) -> bool:
    if names[0] not in here:
        return False
    if names[0] not in there:
        del here[names[0]]
        return True
    one, other = here[names[0]], there[names[0]]
    return one[0] == other[0] == "map" and len(names) > 1 and _forget(one[1], other[1], names[1:])


def _distances(case: Case, body: Json) -> list[float] | None:
    """The distances of the results, computed from their vectors; None if one has no vector."""
    nearest = query_of(case.sent)["findNearest"]
    wanted = nearest["queryVector"]["mapValue"]["fields"]["value"]["arrayValue"]["values"]
    query = [float(value["doubleValue"]) for value in wanted]
    found = []
    for entry in body:
        if "document" not in entry:
            continue
        vector = entry["document"].get("fields", {}).get(nearest["vectorField"]["fieldPath"])
        if vector is None or vector[0] != "map" or "value" not in vector[1]:
            return None
        elements = vector[1]["value"][1]
        if len(elements) != len(query) or any(element[0] != "double" for element in elements):
            return None
        found.append(_distance(nearest["distanceMeasure"], query, [float(element[1]) for element in elements]))
    return found


def _distance(measure: str, one: list[float], other: list[float]) -> float:
    if measure == "EUCLIDEAN":
        return math.dist(one, other)
    dot = math.fsum(x * y for x, y in zip(one, other, strict=True))
    if measure == "DOT_PRODUCT":
        return dot
    lengths = math.sqrt(sum(x * x for x in one)) * math.sqrt(sum(x * x for x in other))
    return 1 - dot / lengths if lengths else math.nan


def equal_distances(case: Case) -> bool:
    """The same distances in the same order, with different documents where several have the same distance.

    Several may have the same distance as the last one, and only some of them are within the limit.
    """
    if case.request.method != "RunQuery" or not case.both_good or "findNearest" not in query_of(case.sent):
        return False
    hearth, emulator = (_distances(case, answer.body) for answer in (case.hearth, case.emulator))
    if hearth is None or emulator is None or len(hearth) != len(emulator):
        return False
    cut = len(hearth) == query_of(case.sent)["findNearest"]["limit"]
    if len(set(hearth)) == len(hearth) and not cut:
        return False
    pairs = zip(hearth, emulator, strict=True)
    if not all(a == b or math.isnan(a) and math.isnan(b) or math.isclose(a, b, rel_tol=1e-12) for a, b in pairs):
        return False
    # Documents in both results must be equal at any position.
    shown = [
        {e["document"]["name"]: e["document"] for e in x.body if "document" in e} for x in (case.hearth, case.emulator)
    ]
    if any(shown[0][name] != shown[1][name] for name in shown[0].keys() & shown[1].keys()):
        return False
    case.agree()
    return True


def distance_bits(case: Case) -> bool:
    """The last bit of a Euclidean distance."""
    nearest = query_of(case.sent).get("findNearest", {})
    if not case.both_good or nearest.get("distanceMeasure") != "EUCLIDEAN" or "distanceResultField" not in nearest:
        return False
    pairs = zip(case.hearth.body, case.emulator.body, strict=False)
    return any([_round(*(entry.get("document", {}).get("fields", {}) for entry in pair)) for pair in pairs])


def _round(fields: Json, others: Json) -> bool:
    """Replaces doubles that differ by one bit, at any depth of maps; returns whether there were any."""
    changed = False
    for name in fields.keys() & others.keys():
        one, other = fields[name], others[name]
        if one[0] == other[0] == "map":
            changed = _round(one[1], other[1]) or changed
        elif one != other and _close(one, other):
            fields[name] = other
            changed = True
    return changed


def odd_values(case: Case) -> bool:
    """The same results in another order, and only some with unusual values at other positions.

    Unusual are values that an index truncates, and points at -0.0, which the emulator sorts before those at 0.0.
    """
    if not case.both_good or case.request.method not in ("RunQuery", "ListDocuments"):
        return False

    def results(body: Json) -> Json:
        return body if isinstance(body, list) else body.get("documents", [])

    def plain(body: Json) -> Json:
        return [entry for entry in results(body) if not _odd(entry)]

    hearth, emulator = case.hearth.body, case.emulator.body
    if plain(hearth) != plain(emulator) or not _same_in_any_order(results(hearth), results(emulator)):
        return False
    if isinstance(hearth, dict) and {**hearth, "documents": []} != {**emulator, "documents": []}:
        return False
    case.agree()
    return True


def _odd(entry: Json) -> bool:
    return len(repr(entry)) >= INDEXED_BYTES_MAX or _at_minus_zero(entry)


def _at_minus_zero(node: Json) -> bool:
    """Whether it contains a point at -0.0, in the canonical form `["point", latitude, longitude]`."""
    if isinstance(node, dict):
        return any(_at_minus_zero(member) for member in node.values())
    if not isinstance(node, list) or not node:
        return False
    return node[0] == "point" and "-0.0" in node[1:] or any(_at_minus_zero(member) for member in node)


def _same_in_any_order(one: list[Json], other: list[Json]) -> bool:
    def name(entry: Json) -> str:
        return str(entry.get("name") or entry.get("document", {}).get("name", ""))

    return sorted(one, key=name) == sorted(other, key=name)


def update_time_in_batch(case: Case) -> bool:
    """The status of a single write of a batch: mismatch (9) or impossible time (3)."""
    if case.request.method != "BatchWrite" or not case.both_good:
        return False
    changed = False
    statuses = zip(case.sent["writes"], case.hearth.body["status"], case.emulator.body["status"], strict=False)
    for write, hearth, emulator in statuses:
        codes = (emulator.get("code"), hearth.get("code"))
        if codes == (9, 3) and future(write) or codes == (3, 9) and list(members(write, "updateTime")):
            hearth["code"] = emulator["code"]
            changed = True
    return changed


def order_without_unsatisfiable(case: Case) -> bool:
    """The emulator does not use an inequality with null or NaN for the order.

    Therefore the same documents may be in another order; and inside an OR the result includes documents without its
    field.
    """
    if case.request.method != "RunQuery" or not case.both_good or not unsatisfiable(case):
        return False
    hearth, emulator = case.hearth.body, case.emulator.body
    found, others = ([entry for entry in body if "document" in entry] for body in (hearth, emulator))
    windowed = {"limit", "offset"} & query_of(case.sent).keys()
    fewer = len(found) < len(others) and all(entry in others for entry in found) and not windowed
    reordered = len(found) > 1 and _same_in_any_order(hearth, emulator)
    same_time = [entry.get("readTime") for entry in hearth[:1]] == [entry.get("readTime") for entry in emulator[:1]]
    if not same_time or not (fewer or reordered):
        return False
    case.agree()
    return True


def without_nan_results(case: Case) -> bool:
    """NOT_EQUAL and NOT_IN with NaN: the emulator keeps documents whose field is NaN, Hearth does not."""
    if not case.both_good or not nan_negated(case):
        return False
    if case.request.method == "RunQuery":
        nan_paths = [c["field"]["fieldPath"] for c in filters_of(case.sent) if c.get("op") in ("NOT_EQUAL", "NOT_IN")]
        shown = {entry["document"]["name"] for entry in case.hearth.body if "document" in entry}
        more = [e["document"] for e in case.emulator.body if "document" in e and e["document"]["name"] not in shown]
        plain = not {"limit", "offset", "select"} & query_of(case.sent).keys()
        simple = [path for path in nan_paths if path.isalnum()]
        if plain and simple and any(d.get("fields", {}).get(simple[0]) != ["double", "NaN"] for d in more):
            return False
    case.agree()
    return True
