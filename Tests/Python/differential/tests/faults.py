"""Faults to plant: each changes one part of an answer in JSON form, or returns None if it cannot."""

from __future__ import annotations

import copy
import dataclasses
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

from differential.request import Json, shift_time
from differential.transports import Answer

Fault = Callable[[Answer], Answer | None]


def _walk(node: Json, inside_value: bool = False) -> Iterator[tuple[Any, Any, Json]]:
    """Holder, key and value of every member, outermost first."""
    members = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in list(members):
        yield node, key, value
        yield from _walk(value)


def _altered(change: Callable[[Json], bool]) -> Fault:
    """A fault that changes the body of a good answer."""

    def fault(answer: Answer) -> Answer | None:
        if not answer.good:
            return None
        body = copy.deepcopy(answer.body)
        return dataclasses.replace(answer, body=body) if change(body) else None

    return fault


def _member(name: str, change: Callable[[Any], Any]) -> Fault:
    """Replaces the first member of that name; a change to the same value does not count."""

    def apply(body: Json) -> bool:
        for holder, key, value in _walk(body):
            if key == name:
                changed = change(value)
                if changed is None or repr(changed) == repr(value):
                    continue
                holder[key] = changed
                return True
        return False

    return _altered(apply)


def _without(name: str) -> Fault:
    def apply(body: Json) -> bool:
        for holder, key, _ in _walk(body):
            if key == name:
                del holder[key]
                return True
        return False

    return _altered(apply)


def _kind(name: str, replacement: str, change: Callable[[Any], Any]) -> Fault:
    """Changes the type of the first value of one type."""

    def apply(body: Json) -> bool:
        for holder, key, value in _walk(body):
            if key == name:
                changed = change(value)
                if changed is not None:
                    del holder[key]
                    holder[replacement] = changed
                    return True
        return False

    return _altered(apply)


def _stream(change: Callable[[list[Json]], list[Json] | None]) -> Fault:
    def fault(answer: Answer) -> Answer | None:
        if not answer.good or not isinstance(answer.body, list):
            return None
        body = change(copy.deepcopy(answer.body))
        return None if body is None else dataclasses.replace(answer, body=body)

    return fault


def _documents(change: Callable[[list[Json]], list[Json] | None]) -> Fault:
    """Changes the list of documents of a ListDocuments answer."""

    def apply(body: Json) -> bool:
        documents = body.get("documents") if isinstance(body, dict) else None
        changed = change(documents) if documents else None
        if changed is None:
            return False
        body["documents"] = changed
        return True

    return _altered(apply)


def _swapped(entries: list[Json]) -> list[Json] | None:
    """Swaps the first two results, if that makes a difference."""
    for place in range(len(entries) - 1):
        one, other = entries[place], entries[place + 1]
        if "document" in one and "document" in other or "name" in one:
            entries[place], entries[place + 1] = other, one
            if "document" in one:
                entries[place]["document"], entries[place + 1]["document"] = other["document"], one["document"]
            return entries
    return None


def _answered(answer: Answer, **changes: Any) -> Answer:
    return dataclasses.replace(answer, **changes)


def _whole(text: str) -> float | None:
    return float(text) if abs(int(text)) < 2**53 else None


def _late(entries: list[Json]) -> list[Json] | None:
    if sum("readTime" in entry for entry in entries) < 2 or "readTime" not in entries[-1]:
        return None
    entries[-1]["readTime"] = shift_time(entries[-1]["readTime"], 1000)
    return entries


SECOND = 10**9

FAULTS: dict[str, Fault] = {
    # Outcomes
    "another code": lambda a: None if a.good else _answered(a, code="INTERNAL"),
    "success instead of an error": lambda a: None if a.good else _answered(a, code="OK", body={}),
    "an error instead of success": lambda a: _answered(a, code="INVALID_ARGUMENT", body=None) if a.good else None,
    "another HTTP status": lambda a: _answered(a, http=418) if a.http else None,
    "another shape of the error": lambda a: _answered(a, shape="array") if a.shape == "object" else None,
    "no answer": lambda a: _answered(a, code="NO_ANSWER", body=None),
    # Results
    "a result missing": _stream(lambda entries: entries[1:] if len(entries) > 1 else None),
    "a result twice": _stream(lambda entries: [entries[0], *entries] if entries else None),
    "results in another order": _stream(_swapped),
    "one read time differs": _stream(_late),
    "a listed document missing": _documents(lambda documents: documents[1:]),
    "listed documents in another order": _documents(_swapped),
    "found instead of missing": _kind("missing", "found", lambda name: {"name": name}),
    "missing instead of found": _kind("found", "missing", lambda document: document["name"]),
    "a member more": _altered(lambda body: isinstance(body, dict) and not body.update(extra=1)),
    "another name": _member("name", lambda name: name + "x"),
    "a collection id missing": _member("collectionIds", lambda ids: ids[1:]),
    "no page token": _without("nextPageToken"),
    "an empty page token": _member("nextPageToken", lambda token: ""),
    "no transaction id": _without("transaction"),
    "a write result missing": _member("writeResults", lambda results: results[1:] if results else None),
    "a transform result missing": _member("transformResults", lambda results: results[1:]),
    "a failed write that counts as good": _member("status", lambda s: [{} for _ in s] if any(s) else None),
    # Times
    "no update time": _without("updateTime"),
    "no create time": _without("createTime"),
    "no read time": _without("readTime"),
    "no commit time": _without("commitTime"),
    "an update time of nobody": _member("updateTime", lambda time: shift_time(time, 1000)),
    "a create time of nobody": _member("createTime", lambda time: shift_time(time, -1000)),
    "a read time of the past": _member("readTime", lambda time: shift_time(time, -3600 * SECOND)),
    "a commit time of the past": _member("commitTime", lambda time: shift_time(time, -3600 * SECOND)),
    "a commit time of nanoseconds": _member("commitTime", lambda time: shift_time(time, 1)),
    # Values
    "an integer off by one": _member("integerValue", lambda text: str(int(text) + 1)),
    "an integer as a double": _kind("integerValue", "doubleValue", _whole),
    "a large integer through a double": _member("integerValue", lambda text: str(int(float(text)))),
    "a double as an integer": _kind("doubleValue", "integerValue", lambda d: "1" if d == 1.0 else None),
    "a double off by one bit": _member("doubleValue", lambda d: 0.10000000000000002 if d == 0.1 else None),
    "minus zero without its sign": _member("doubleValue", lambda d: 0.0 if str(d) == "-0.0" else None),
    "NaN as zero": _member("doubleValue", lambda d: 0.0 if d == "NaN" else None),
    "infinity as the largest double": _member(
        "doubleValue", lambda d: 1.7976931348623157e308 if d == "Infinity" else None
    ),
    "null as false": _kind("nullValue", "booleanValue", lambda _: False),
    "a Boolean turned": _member("booleanValue", lambda value: not value),
    "text normalised": _member("stringValue", lambda text: unicodedata.normalize("NFC", text)),
    "text cut at a NUL": _member("stringValue", lambda text: text.split("\0")[0]),
    "text cut at 1500": _member("stringValue", lambda text: text[:1500]),
    "bytes as text": _kind("bytesValue", "stringValue", lambda text: text),
    "empty bytes missing": _kind("bytesValue", "nullValue", lambda text: None if text else "NULL"),
    "a reference elsewhere": _member("referenceValue", lambda name: name.replace("documents/", "documents/x/y/")),
    "a point turned": _member("latitude", lambda degrees: -degrees if degrees else None),
    "a timestamp to the millisecond": _member(
        "timestampValue", lambda t: "1970-01-01T00:00:00Z" if "00001" in t else None
    ),
    "a stamp of microseconds": _member("timestampValue", lambda t: shift_time(t, 1000) if t[:2] == "20" else None),
    "an array turned round": _member("values", lambda values: values[::-1] if values else None),
    "an array with one more": _member("values", lambda values: [*values, {"nullValue": None}]),
    "a field missing": _member("fields", lambda fields: dict(list(fields.items())[1:]) if fields else None),
    "a field renamed": _member("fields", lambda fields: {key + "x": value for key, value in fields.items()}),
    "an empty map missing": _kind("mapValue", "nullValue", lambda content: None if content else "NULL"),
    "an aggregate missing": _member("aggregateFields", lambda fields: dict(list(fields.items())[1:])),
}


# Faults that resemble a known difference, and the rules that may therefore accept them.
LOOK_ALIKES: dict[str, set[str]] = {
    "success instead of an error": {"conditions on several writes to one document"},
    "another shape of the error": {"shape of a stream's error over REST"},
    "results in another order": {
        "neighbours at the same distance",
        "conditions that nothing satisfies: order",
        # Where one of the two swapped results has such a value.
        "order of values over 1500 bytes, and of points at -0.0",
    },
    "no page token": {"token after a full last page", "page sizes of lists"},
    "an empty page token": {"page sizes of lists"},
}

# Changes without meaning. The tester must not report them.
HARMLESS: dict[str, Fault] = {
    "another text": lambda a: None if a.good else _answered(a, message="other words"),
    "fields in another order": _member("fields", lambda fields: dict(reversed(list(fields.items())))),
    "another page token": _member("nextPageToken", lambda token: "QUJD" if token else None),
    "an integral double without fraction": _member("doubleValue", lambda d: int(d) if d == 1.5 - 0.5 else None),
    "a later read time throughout": _altered(lambda body: _shift_read_times(body)),
}


def _shift_read_times(body: Json) -> bool:
    found = [holder for holder, key, _ in _walk(body) if key == "readTime"]
    for holder in found:
        holder["readTime"] = shift_time(holder["readTime"], 1000)
    return bool(found)
