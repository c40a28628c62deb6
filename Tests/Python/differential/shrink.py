"""Makes a reproduction smaller: removes earlier requests, then parts of them, while the difference remains."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from .request import Json, Request
from .runner import Difference, Pair

ATTEMPTS_MAX = 250


class Shrinker:
    """Each attempt runs in a database of its own, because the earlier attempts left documents behind."""

    def __init__(self, pair: Pair, project: str, tag: str) -> None:
        self._pair = pair
        self._project = project
        self._tag = tag
        self._attempts = 0

    def shrink(self, history: list[Request], difference: Difference) -> tuple[list[Request], Difference] | None:
        """The shortest history found that still has the difference, or None if it is not reproducible."""
        self._attempts = 0
        best = self._try(history, difference.signature)
        if best is None:
            return None
        best = self._fewer_requests(*best)
        best = self._fewer_writes(*best)
        return self._fewer_members(*best)

    def _try(self, history: list[Request], signature: str) -> tuple[list[Request], Difference] | None:
        if self._attempts >= ATTEMPTS_MAX:
            return None
        self._attempts += 1
        project = f"{self._project}-{self._tag}{self._attempts}"
        renamed = [replace(request, body=_renamed(request.body, self._project, project)) for request in history]
        outcome = self._pair.run(renamed)
        for found in outcome.differences:
            if found.request.index == history[-1].index and found.signature == signature:
                return history, found
        return None

    def _fewer_requests(self, history: list[Request], found: Difference) -> tuple[list[Request], Difference]:
        """Removes ever smaller runs of requests; the last request is the one that differs."""
        size = max(1, (len(history) - 1) // 2)
        while True:
            start = 0
            while start < len(history) - 1:
                shorter = history[:start] + history[min(start + size, len(history) - 1) :]
                smaller = self._try(shorter, found.signature)
                if smaller is None:
                    start += size
                else:
                    history, found = smaller
            if size == 1:
                return history, found
            size //= 2

    def _fewer_writes(self, history: list[Request], found: Difference) -> tuple[list[Request], Difference]:
        for place, request in enumerate(history):
            write = len(request.body.get("writes", [])) - 1
            while write >= 0 and len(history[place].body["writes"]) > 1:
                body = copy.deepcopy(history[place].body)
                del body["writes"][write]
                smaller = self._try(_with(history, place, body), found.signature)
                if smaller is not None:
                    history, found = smaller
                write -= 1
        return history, found

    def _fewer_members(self, history: list[Request], found: Difference) -> tuple[list[Request], Difference]:
        """Drops optional members of the requests, fields of documents and members of filters one by one."""
        for place in range(len(history) - 1, -1, -1):
            for path in reversed(list(_droppable(history[place].body))):
                body = copy.deepcopy(history[place].body)
                if _drop(body, path):
                    smaller = self._try(_with(history, place, body), found.signature)
                    if smaller is not None:
                        history, found = smaller
        return history, found


KEPT = {"database", "parent", "name", "document", "update", "from", "structuredQuery", "structuredAggregationQuery"}


def _droppable(node: Json, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found: list[tuple[str | int, ...]] = []
    if isinstance(node, dict) and "$from" not in node:
        for key, member in node.items():
            if key not in KEPT and not key.endswith("Value"):
                found.append((*path, key))
            found += _droppable(member, (*path, key))
    elif isinstance(node, list):
        for index, member in enumerate(node):
            found.append((*path, index))
            found += _droppable(member, (*path, index))
    return found


def _drop(body: Json, path: tuple[str | int, ...]) -> bool:
    node = body
    for step in path[:-1]:
        if isinstance(node, dict) and step not in node or isinstance(node, list) and int(step) >= len(node):
            return False
        node = node[step]
    last: Any = path[-1]
    if isinstance(node, dict) and last in node or isinstance(node, list) and last < len(node):
        del node[last]
        return True
    return False


def _with(history: list[Request], place: int, body: Json) -> list[Request]:
    return [*history[:place], replace(history[place], body=body), *history[place + 1 :]]


def _renamed(node: Json, old: str, new: str) -> Json:
    if isinstance(node, dict):
        return {key: _renamed(member, old, new) for key, member in node.items()}
    if isinstance(node, list):
        return [_renamed(member, old, new) for member in node]
    if isinstance(node, str) and f"projects/{old}/" in node:
        return node.replace(f"projects/{old}/", f"projects/{new}/")
    return node
