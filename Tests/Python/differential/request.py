"""A request in the common form of both servers and both transports.

The body is the request message in proto3 JSON form. For data that only a server knows (a commit time, a transaction id,
a page token), it contains a *reference* to an earlier answer:

    {"$from": [12, "writeResults", 0, "updateTime"], "plusNanos": 1000, "else": "2020-01-01T00:00:00Z"}

The first element is the index of the request that was answered, the rest a path in the answer's JSON form (a stream is
a list). Each server's own answer is used, so that the two remain comparable. `else` is used when the path does not
exist; without it the request is omitted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Json = Any

READS = frozenset(
    {
        "GetDocument",
        "ListDocuments",
        "BatchGetDocuments",
        "RunQuery",
        "RunAggregationQuery",
        "PartitionQuery",
        "ListCollectionIds",
    }
)
WRITES = frozenset({"CreateDocument", "UpdateDocument", "DeleteDocument", "Commit", "BatchWrite"})


@dataclass(frozen=True)
class Request:
    """One request of an episode."""

    index: int
    kind: str
    method: str
    body: Json
    rest: bool = False
    # Names the deliberate error, for the report; empty for a valid request.
    spoiled: str = ""
    tags: frozenset[str] = field(default=frozenset())

    @property
    def commutes(self) -> bool:
        """Whether it may run concurrently with its neighbours: a read without a transaction."""
        return self.method in READS and not mentions(self.body, ("transaction", "newTransaction", "$from"))


class Missing(Exception):
    """The path of a reference does not exist and there is no `else`."""


def mentions(node: Json, keys: tuple[str, ...]) -> bool:
    if isinstance(node, dict):
        return any(key in keys or mentions(member, keys) for key, member in node.items())
    if isinstance(node, list):
        return any(mentions(member, keys) for member in node)
    return False


def reference(index: int, *path: str | int, stand_in: Json = None, plus_nanos: int = 0) -> Json:
    made: dict[str, Json] = {"$from": [index, *path]}
    if stand_in is not None:
        made["else"] = stand_in
    if plus_nanos:
        made["plusNanos"] = plus_nanos
    return made


def resolve(node: Json, answers: dict[int, Json]) -> Json:
    """The body with every reference replaced by this server's data."""
    if isinstance(node, dict):
        if "$from" in node:
            return _look_up(node, answers)
        return {key: resolve(member, answers) for key, member in node.items()}
    if isinstance(node, list):
        return [resolve(member, answers) for member in node]
    return node


def stand_ins(node: Json, answers: dict[int, Json]) -> list[bool]:
    """For each reference, in order, whether its `else` is used."""
    if isinstance(node, dict):
        if "$from" in node:
            return [_found(node, answers) is None]
        return [used for member in node.values() for used in stand_ins(member, answers)]
    if isinstance(node, list):
        return [used for member in node for used in stand_ins(member, answers)]
    return []


def _found(node: Json, answers: dict[int, Json]) -> Json:
    index, *path = node["$from"]
    found: Json = answers.get(index)
    for step in path:
        if isinstance(found, dict):
            found = found.get(step)
        elif isinstance(found, list) and isinstance(step, int) and step < len(found):
            found = found[step]
        else:
            found = None
    return None if isinstance(found, dict | list) else found


def _look_up(node: Json, answers: dict[int, Json]) -> Json:
    found = _found(node, answers)
    if found is None:
        if "else" in node:
            return resolve(node["else"], answers)
        raise Missing(f"nothing at {node['$from']}")
    return shift_time(found, node["plusNanos"]) if "plusNanos" in node else found


_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:)(\d\d)(?:\.(\d+))?Z")


def nanoseconds(text: str) -> int | None:
    """A UTC timestamp as nanoseconds since 1970, or None if the string is not one."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    return _minute_seconds(match[1]) * 10**9 + int(match[2]) * 10**9 + int((match[3] or "").ljust(9, "0"))


def _minute_seconds(minute: str) -> int:
    return round(datetime.fromisoformat(minute + "00").replace(tzinfo=UTC).timestamp())


def shift_time(text: str, nanos: int) -> str:
    before = nanoseconds(text)
    if before is None:
        return text
    seconds, rest = divmod(before + nanos, 10**9)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{rest:09d}Z"
