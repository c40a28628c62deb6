"""A listener that works like the SDKs: it stores its targets' documents, resumes, and checks counts and bloom filters.

It processes each message as their "watch change aggregator" and "remote store" do, and logs each snapshot for the judge
(`support/snapshots.py`). Messages after the last boundary are dropped when a stream breaks.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from support.model import Entry, Query, decode_fields, entry, fill_target
from support.snapshots import Boundary, Log
from support.streams import ListenRequest

NO_CHANGE, ADD, REMOVE, CURRENT, RESET = range(5)


class WatchFault(AssertionError):
    """The server sent a message that no client can interpret."""


@dataclass
class Target:
    id: int
    #: Of this lifetime; a target that starts without data has a new one.
    life: int
    query: int
    documents: dict[str, Entry] = field(default_factory=dict)
    #: The documents before the messages since the last boundary, the newest last.
    undo: list[tuple[str, Entry | None]] = field(default_factory=list)
    token: bytes = b""
    #: Of the token.
    read_time: int = 0
    #: Requests that are not answered yet.
    outstanding: int = 0
    is_wanted: bool = True
    is_current: bool = False
    is_in_mismatch: bool = False

    @property
    def is_active(self) -> bool:
        return self.is_wanted and self.outstanding == 0

    def put(self, name: str, after: Entry | None) -> None:
        before = self.documents.get(name)
        self.undo.append((name, before))
        self._set(name, after)

    def _set(self, name: str, after: Entry | None) -> None:
        if after is None:
            self.documents.pop(name, None)
        else:
            self.documents[name] = after

    def roll_back(self) -> None:
        """To the last boundary."""
        while self.undo:
            self._set(*self.undo.pop())

    def changes(self) -> list[tuple[int, str, Entry | None]]:
        return [(self.life, name, self.documents.get(name)) for name in dict.fromkeys(name for name, _ in self.undo)]


class BloomFilter:
    """`google.firestore.v1.BloomFilter`, by its comments."""

    def __init__(self, message: Any) -> None:
        self.bitmap = message.bits.bitmap
        self.bits = 8 * len(self.bitmap) - message.bits.padding
        self.hashes = message.hash_count
        if not 0 <= message.bits.padding <= 7 or self.bits < 0 or (self.bits > 0 and self.hashes <= 0):
            raise WatchFault(f"no bloom filter: {message}")

    def __contains__(self, name: str) -> bool:
        if self.bits == 0:
            return False
        digest = hashlib.md5(name.encode(), usedforsecurity=False).digest()
        one, two = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
        for number in range(self.hashes):
            bit = (one + number * two) % 2**64 % self.bits
            if not self.bitmap[bit // 8] >> (bit % 8) & 1:
                return False
        return True


class Watcher:
    """Targets over one stream after another. `open` makes a stream with `send`, `take` and `cancel`."""

    def __init__(self, name: str, database: str, queries: Sequence[Query], open: Callable[[], Any]) -> None:
        self.log = Log(name)
        self.counts: Counter[str] = Counter()
        self.stream: Any = None
        #: By id.
        self.targets: dict[int, Target] = {}
        #: Called before a target sends its document count: may remove documents, or add some that do not exist.
        self.spoil: Callable[[Target], None] = lambda _: None
        self._database = database
        self._root = f"{database}/documents"
        self._queries = queries
        self._open = open
        self._lives = 0
        self._last_read_time = 0

    # Requests

    def connect(self) -> None:
        self.stream = self._open()

    def reconnect(self, by_time: bool = False, expects: bool = True) -> None:
        """After a break: all targets again, from their state at the last boundary."""
        self.counts["reconnects"] += 1
        self.connect()
        for target in list(self.targets.values()):
            target.roll_back()
            if not target.is_wanted:
                del self.targets[target.id]
                continue
            target.is_in_mismatch = False
            target.outstanding = 0
            self._send_add(target, by_time, expects)

    def add(self, id: int, query: int) -> None:
        self._lives += 1
        target = Target(id, self._lives, query)
        self.log.queries[target.life] = query
        self.targets[id] = target
        self._send_add(target)

    def _send_add(self, target: Target, by_time: bool = False, expects: bool = False, label: str = "") -> None:
        request = ListenRequest(database=self._database)
        added = request.add_target
        added.target_id = target.id
        fill_target(self._queries[target.query], self._root, added)
        if target.token:
            self.counts["resumes"] += 1
            if expects:
                self.spoil(target)
            if by_time:
                added.read_time.FromMicroseconds(target.read_time)
            else:
                added.resume_token = target.token
            if expects:
                added.expected_count.value = len(target.documents)
        if label:
            request.labels["goog-listen-tags"] = label
        target.is_wanted, target.is_current = True, False
        target.outstanding += 1
        self.stream.send(request)

    def _send_remove(self, target: Target) -> None:
        target.roll_back()
        target.is_wanted = target.is_current = False
        target.outstanding += 1
        self.stream.send(ListenRequest(database=self._database, remove_target=target.id))

    def remove(self, id: int) -> None:
        self.counts["removes"] += 1
        self._send_remove(self.targets[id])

    def add_again(self, id: int, keeps: bool, by_time: bool = False, expects: bool = True) -> None:
        """A removed target: from its last state, or, without stored data, from the beginning."""
        target = self.targets[id]
        if not keeps:
            self._forget(target)
        self._send_add(target, by_time, expects)

    def _forget(self, target: Target) -> None:
        """The target begins a new lifetime, without data."""
        self._lives += 1
        target.life = self._lives
        self.log.queries[target.life] = target.query
        target.documents, target.undo, target.token, target.read_time = {}, [], b"", 0
        target.is_in_mismatch = False

    # Answers

    @property
    def is_settled(self) -> bool:
        return all(target.is_active and target.is_current and not target.undo for target in self.targets.values())

    def process(self, message: Any) -> bool:
        """Processes a message as SDKs do; true for a boundary."""
        kind = message.WhichOneof("response_type")
        body = getattr(message, kind)
        match kind:
            case "target_change":
                return self._target_change(body)
            case "document_change":
                document = body.document
                name = self._path(document.name)
                times = document.create_time.ToMicroseconds(), document.update_time.ToMicroseconds()
                shown = entry(*times, decode_fields(document.fields))
                for target in self._active(body.target_ids):
                    target.put(name, shown)
                for target in self._active(body.removed_target_ids):
                    target.put(name, None)
            case "document_delete" | "document_remove":
                if not body.HasField("read_time"):
                    raise WatchFault(f"no read time: {body}")
                for target in self._active(body.removed_target_ids):
                    target.put(self._path(body.document), None)
            case "filter":
                for target in self._active([body.target_id]):
                    self._filter(target, body)
        return False

    def _path(self, name: str) -> str:
        if not name.startswith(self._root + "/"):
            raise WatchFault(f"a document of another database: {name}")
        return name[len(self._root) + 1 :]

    def _active(self, ids: Sequence[int]) -> list[Target]:
        return [self.targets[id] for id in ids if id in self.targets and self.targets[id].is_active]

    def _target_change(self, change: Any) -> bool:
        match change.target_change_type:
            case 0 if not change.target_ids:
                self._boundary(change)
                return True
            case 1:
                self._answered(change)
            case 2:
                if change.HasField("cause"):
                    raise WatchFault(f"{self.log.name}: a target is refused: {change}")
                self._answered(change)
            case 3:
                if not (change.resume_token and change.HasField("read_time")):
                    raise WatchFault(f"CURRENT without token and time: {change}")
                for target in self._active(change.target_ids):
                    target.is_current = True
            case 4:
                self.counts["resets"] += 1
                for target in self._active(change.target_ids):
                    for name in list(target.documents):
                        target.put(name, None)
                    target.is_current = False
        return False

    def _answered(self, change: Any) -> None:
        for id in change.target_ids:
            target = self.targets.get(id)
            if target is None or target.outstanding == 0:
                raise WatchFault(f"{self.log.name}: nobody asked for {change}")
            target.outstanding -= 1

    def _boundary(self, change: Any) -> None:
        if not change.resume_token or not change.HasField("read_time"):
            raise WatchFault(f"a boundary without token and time: {change}")
        time = change.read_time.ToMicroseconds()
        if change.read_time.nanos % 1000:
            raise WatchFault(f"a read time finer than versions: {change}")
        active = [target for target in self.targets.values() if target.is_active]
        if loading := [target.id for target in active if not target.is_current]:
            # It would accept the token, and resume with it after a break without ever having had its documents.
            raise WatchFault(f"{self.log.name}: a boundary while {loading} aren't complete: {change}")
        changes: list[tuple[int, str, Entry | None]] = []
        for target in active:
            changes += target.changes()
            target.undo.clear()
            target.token, target.read_time = change.resume_token, time
        shown = tuple(target.life for target in active if not target.is_in_mismatch)
        self.log.boundaries.append(Boundary(time, changes, shown))
        for target in active:
            if target.is_in_mismatch:
                # Both requests in one go, as SDKs do.
                self.counts["mismatches"] += 1
                self._send_remove(target)
                self._forget(target)
                self._send_add(target, label="existence-filter-mismatch")

    def _filter(self, target: Target, filter: Any) -> None:
        self.counts["filters"] += 1
        query = self._queries[target.query]
        if query.documents and len(query.documents) == 1:
            if filter.count == 0:
                target.put(query.documents[0], None)
            return
        if filter.count == len(target.documents):
            return
        if filter.HasField("unchanged_names"):
            self.counts["bloom filters"] += 1
            unchanged = BloomFilter(filter.unchanged_names)
            for name in list(target.documents):
                if f"{self._root}/{name}" not in unchanged:
                    target.put(name, None)
            if filter.count == len(target.documents):
                return
        for name in list(target.documents):
            target.put(name, None)
        target.is_in_mismatch = True
