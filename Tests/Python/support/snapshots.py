"""Checks listeners' snapshots: every snapshot must equal its queries' results at its read time.

The commits, sorted by the times that their writers received, determine the result of each query at each version. A
result is stored as a sum of hashes, one for each document, so that a snapshot is compared in constant time; only a
wrong one is computed in full, to describe the difference.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from support.model import Commit, Document, Entry, Query, entry

#: The number of faults that are described; the rest is only counted.
DESCRIBED_MAX = 20


@dataclass(frozen=True)
class Boundary:
    """One snapshot of one listener: what changed since its last one, by target."""

    read_time: int
    #: Target, document, and its new state; None when it left.
    changes: Sequence[tuple[int, str, Entry | None]]
    #: The targets that must be correct now.
    shown: tuple[int, ...]


@dataclass
class Log:
    """The log of one listener. A target's number identifies a lifetime with one query, however often it is resumed."""

    name: str
    queries: dict[int, int] = field(default_factory=dict)
    boundaries: list[Boundary] = field(default_factory=list)


class Timeline:
    """One query's results at all versions."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.times = [0]
        self.sums = [0]
        self._members: dict[str, tuple[Any, int]] = {}
        #: All matches in order, for windows.
        self._order: list[tuple[Any, str]] = []
        self._sum = 0

    def change(self, name: str, after: Document | None) -> None:
        before = self._members.pop(name, None)
        if before is not None:
            self._sum ^= before[1]
            if self.query.is_window:
                del self._order[bisect_left(self._order, (before[0], name))]
        place = self.query.position(after) if after is not None else None
        if place is None or after is None:
            return
        shown = hashed(name, entry(after.created, after.updated, self.query.shown(after.fields)))
        self._members[name] = (place, shown)
        self._sum ^= shown
        if self.query.is_window:
            insort(self._order, (place, name))

    def close(self, time: int) -> None:
        """No more changes have this time."""
        total = self._sum
        if self.query.is_window:
            end = None if self.query.limit is None else self.query.offset + self.query.limit
            total = 0
            for _, name in self._order[self.query.offset : end]:
                total ^= self._members[name][1]
        if total != self.sums[-1]:
            self.times.append(time)
            self.sums.append(total)

    def at(self, time: int) -> int:
        return self.sums[bisect_right(self.times, time) - 1]


def hashed(name: str, shown: Entry) -> int:
    return hash((name, shown))


class Judge:
    def __init__(self, commits: Iterable[Commit], queries: Sequence[Query]) -> None:
        self.commits = sorted(commits, key=lambda commit: commit.time)
        self.queries = queries
        self.timelines = [Timeline(query) for query in queries]
        #: Errors in the commits themselves.
        self.faults = [
            f"two commits at {one.time}"
            for one, other in zip(self.commits, self.commits[1:], strict=False)
            if one.time == other.time
        ]
        documents: dict[str, Document] = {}
        for commit in self.commits:
            changed = commit.apply(documents)
            for timeline in self.timelines:
                for name, after in changed.items():
                    timeline.change(name, after)
                if changed:
                    timeline.close(commit.time)
        self.final = documents

    def documents_at(self, time: int) -> dict[str, Document]:
        documents: dict[str, Document] = {}
        for commit in self.commits:
            if commit.time > time:
                break
            commit.apply(documents)
        return documents

    def result_at(self, query: int, time: int) -> dict[str, Entry]:
        """The simple method: everything is computed again."""
        chosen = self.queries[query]
        return {
            document.name: entry(document.created, document.updated, chosen.shown(document.fields))
            for document in chosen.result(self.documents_at(time).values())
        }

    def check(self, log: Log) -> list[str]:
        """The errors in a listener's snapshots."""
        faults: list[str] = []
        states: dict[int, dict[str, Entry]] = {}
        sums: dict[int, int] = {}
        last = 0
        for number, boundary in enumerate(log.boundaries):
            for target, name, after in boundary.changes:
                state = states.setdefault(target, {})
                before = state.pop(name, None)
                if before is not None:
                    sums[target] ^= hashed(name, before)
                if after is not None:
                    state[name] = after
                    sums[target] = sums.get(target, 0) ^ hashed(name, after)
            where = f"{log.name}, snapshot {number} at {boundary.read_time}"
            if boundary.read_time < last:
                faults.append(f"{where}: the read time before was {last}")
            last = max(last, boundary.read_time)
            for target in boundary.shown:
                query = log.queries[target]
                if sums.get(target, 0) == self.timelines[query].at(boundary.read_time):
                    continue
                if len(faults) < DESCRIBED_MAX:
                    described = self._describe(query, boundary.read_time, states.get(target, {}))
                    faults.append(f"{where}, target {target}: {described}")
                else:
                    faults.append(where)
        return faults

    def _describe(self, query: int, time: int, seen: dict[str, Entry]) -> str:
        right = self.result_at(query, time)
        parts = [f"{name} is missing: {right[name]}" for name in sorted(right.keys() - seen.keys())]
        parts += [f"{name} is too many: {seen[name]}" for name in sorted(seen.keys() - right.keys())]
        parts += [
            f"{name} is {seen[name]}, not {right[name]}"
            for name in sorted(seen.keys() & right.keys())
            if seen[name] != right[name]
        ]
        near = [commit.time for commit in self.commits if abs(commit.time - time) < 20_000]
        return f"{self.queries[query]}: {'; '.join(parts) or 'right after all?'}. Commits around: {near[:10]}"
