"""Dozens of writers and listeners: their writes, their queries, and the faults that they are exposed to."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import grpc

from support.calls import Calls
from support.model import Commit, Entry, Moment, Query, Write, encode
from support.watching import Target, Watcher
from support.wire import message_class

WRITERS = 4
LISTENERS = 18
#: The rate of all writers together: listeners have time to see most commits one by one.
COMMITS_PER_SECOND = 120

CommitRequest = message_class("CommitRequest")

COLLECTIONS = {"a": 16, "b": 12, "sub": 4, "a/p/sub": 5, "b/q/sub": 5}
NAMES = [f"{collection}/d{number:02}" for collection, count in COLLECTIONS.items() for number in range(count)]

ASC, DESC = "asc", "desc"
QUERIES = (
    Query("a"),
    Query("a", where=("n", "==", 3)),
    Query("a", where=("n", ">", 4), order=(("n", ASC),)),
    Query("a", where=("and", [("n", ">=", 2), ("n", "<", 7)]), order=(("n", DESC),), limit=4),
    Query("a", order=(("n", ASC),), limit=3),
    # How `limitToLast` arrives.
    Query("a", order=(("n", DESC), ("__name__", DESC)), limit=3),
    Query("a", where=("tags", "array-contains", "x")),
    Query("b", where=("tags", "array-contains-any", ["y", 3])),
    Query("b", where=("s", "in", ["é", "z", 2])),
    Query("a", where=("s", "!=", "z")),
    Query("b", where=("s", "not-in", ["z", "é"]), limit=2),
    Query("sub", group=True),
    Query("sub", group=True, where=("n", ">", 3), order=(("n", ASC),), limit=4),
    Query("sub", group=True, where=("s", "==", "漢")),
    Query("b", where=("n", ">", 2), select=("n", "m.x")),
    Query("b", order=(("s", DESC), ("n", ASC)), limit=5),
    Query("a", where=("or", [("n", "==", 1), ("s", "==", "z")])),
    Query("b", where=("or", [("n", ">", 6), ("tags", "array-contains", "x")]), limit=3),
    Query("sub", parent="a/p", limit=2, offset=1),
    Query("sub", parent="b/q", where=("m.x", "==", 1)),
    Query("a", order=(("n", ASC),), start=((3,), True), end=((6,), True)),
    Query("b", order=(("n", DESC), ("s", ASC)), start=((7,), False), limit=3),
    Query("a", where=("__name__", ">=", "a/d08")),
    Query("b", where=("tags", "array-contains", "y"), limit=2),
    Query("a", where=("t", ">", Moment(0)), order=(("t", DESC),), limit=2),
    Query(documents=("a/d00", "a/d01", "b/d00")),
    Query(documents=("sub/d01",)),
    Query(documents=("a/d03", "nowhere/at-all")),
)


class Writer:
    """One thread's commits."""

    def __init__(self, number: int, seed: int, calls: Calls, project: str, done: threading.Event) -> None:
        self.choice = random.Random(f"writer {number} {seed}")
        self.calls = calls
        self.database = f"projects/{project}/databases/(default)"
        self.done = done
        self.commits: list[Commit] = []
        self.fault: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.done.is_set():
                began = time.monotonic()
                self.commit(
                    [self.write(name) for name in self.choice.sample(NAMES, self.choice.choice((1, 1, 2, 3, 6)))]
                )
                self.done.wait(max(0.0, WRITERS / COMMITS_PER_SECOND - (time.monotonic() - began)))
        except BaseException as error:  # noqa: BLE001 - told to the test's thread
            self.fault = error

    def value(self) -> Any:
        return self.choice.choice((0, 1, 2, 3, 3.0, 4, 5, 6, 6.5, 7, 8, 9, None, "z", True))

    def fields(self) -> dict[str, Any]:
        made: dict[str, Any] = {"n": self.choice.randrange(10) if self.choice.random() < 0.8 else self.value()}
        if self.choice.random() < 0.7:
            made["s"] = self.choice.choice(("z", "é", "漢", "😀", "", 2, None))
        if self.choice.random() < 0.6:
            made["tags"] = self.choice.sample(("x", "y", "z", 3), self.choice.randrange(4))
        if self.choice.random() < 0.4:
            made["m"] = {"x": self.choice.randrange(3), "y": self.value()}
        if self.choice.random() < 0.1:
            del made["n"]
        return made

    def write(self, name: str) -> Write:
        match self.choice.choices(("set", "merge", "update", "delete", "transform"), (30, 20, 15, 20, 15))[0]:
            case "set":
                return Write(name, self.fields())
            case "delete":
                return Write(name, None)
            case "transform":
                return Write(name, {}, (), self.transforms())
            case kind:
                mask = tuple(self.choice.sample(("n", "s", "tags", "m.x", "m"), 1))
                # A member of a write that is not in its mask is not validated by the server.
                return Write(name, self.fields(), mask, exists=True if kind == "update" else None)

    def transforms(self) -> tuple[tuple[str, str, Any], ...]:
        return self.choice.choice(
            (
                (("n", "increment", 1),),
                (("n", "increment", -2.5), ("t", "time", None)),
                (("n", "maximum", 5),),
                (("tags", "append", ["x", "y"]),),
                (("tags", "remove", ["x"]), ("n", "increment", 1)),
                (("t", "time", None),),
            )
        )

    def commit(self, writes: list[Write]) -> None:
        request = CommitRequest(database=self.database)
        for write in writes:
            self.fill(write, request.writes.add())
        try:
            answer = self.calls("Commit", request)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return  # An update of what is not there.
            raise
        request_time = Moment(0)
        for write, result in zip(writes, answer.write_results, strict=True):
            for (_, kind, _), value in zip(write.transforms, result.transform_results, strict=True):
                if kind == "time":
                    request_time = Moment(value.timestamp_value.ToMicroseconds())
        self.commits.append(Commit(answer.commit_time.ToMicroseconds(), tuple(writes), request_time))

    def fill(self, write: Write, into: Any) -> None:
        name = f"{self.database}/documents/{write.name}"
        if write.fields is None:
            into.delete = name
            return
        into.update.name = name
        for key, value in write.fields.items():
            encode(value, into.update.fields[key])
        if write.mask is not None:
            into.update_mask.SetInParent()
            into.update_mask.field_paths.extend(write.mask)
        if write.exists is not None:
            into.current_document.exists = write.exists
        for path, kind, operand in write.transforms:
            transform = into.update_transforms.add(field_path=path)
            match kind:
                case "time":
                    transform.set_to_server_value = "REQUEST_TIME"
                case "increment" | "maximum":
                    encode(operand, getattr(transform, kind))
                case "append" | "remove":
                    member = "append_missing_elements" if kind == "append" else "remove_all_from_array"
                    for element in operand:
                        encode(element, getattr(transform, member).values.add())


class Listener:
    """One thread that watches some queries and suffers a fault most of the time."""

    def __init__(self, number: int, seed: int, kind: str, open: Callable[[], Any], project: str) -> None:
        self.choice = random.Random(f"listener {number} {seed}")
        self.kind = kind
        queries = self.choice.sample(range(len(QUERIES)), self.choice.choice((1, 2, 3, 4)))
        # Each query has a watcher.
        queries = list(dict.fromkeys([number % len(QUERIES), (number + LISTENERS) % len(QUERIES), *queries]))
        name = f"listener {number} over {kind}"
        self.watcher = Watcher(name, f"projects/{project}/databases/(default)", QUERIES, open)
        self.watcher.spoil = self.spoil
        self.queries = queries
        #: After the end of the writers: the result of each query.
        self.final: list[dict[str, Entry]] | None = None
        self.deadline = 0.0
        self.is_done = threading.Event()
        self.fault: BaseException | None = None

    @property
    def snapshots(self) -> int:
        return len(self.watcher.log.boundaries)

    def run(self) -> None:
        watcher = self.watcher
        try:
            watcher.connect()
            for number, query in enumerate(self.queries):
                watcher.add(2 * number + 2, query)
            while not (self.final is not None and self.has_arrived()):
                try:
                    is_boundary = watcher.process(watcher.stream.take(0.2))
                except queue.Empty:
                    is_boundary = False
                    assert self.final is None or time.monotonic() < self.deadline, self.complaint()
                if self.final is None:
                    self.act(0.02 if is_boundary else 0.002)
                else:
                    self.take_up_all()
        except BaseException as error:  # noqa: BLE001 - told to the test's thread
            self.fault = error
        self.is_done.set()
        if watcher.stream is not None:
            watcher.stream.cancel()

    def act(self, likelihood: float) -> None:
        if self.choice.random() >= likelihood:
            return
        watcher = self.watcher
        by_time, expects = self.choice.random() < 0.2, self.choice.random() < 0.7
        match self.choice.choices(("break", "drop", "shake", "sleep"), (30, 40, 20, 10))[0]:
            case "break":
                watcher.stream.cancel()
                # Other changes happen meanwhile.
                time.sleep(self.choice.choice((0, 0, 0.05, 0.3)))
                watcher.reconnect(by_time, expects)
            case "drop":
                target = self.choice.choice(list(watcher.targets.values()))
                if target.is_wanted:
                    watcher.remove(target.id)
                if self.choice.random() < 0.7:
                    watcher.add_again(target.id, self.choice.random() < 0.7, by_time, expects)
            case "shake":
                if self.kind != "grpc":
                    watcher.counts["cuts"] += 1
                    watcher.stream.session.cut()
            case "sleep":
                time.sleep(self.choice.choice((0.1, 0.5)))
        self.take_up_all(0.2)

    def spoil(self, target: Target) -> None:
        """A client that lost a part of its memory: the count that it sends lets the server help."""
        if QUERIES[target.query].documents:
            return  # SDKs count the results of queries only.
        match self.choice.choices(("nothing", "lose", "invent"), (80, 12, 8))[0]:
            case "lose" if target.documents:
                target.put(self.choice.choice(list(target.documents)), None)
            case "invent":
                target.put("a/invented", Entry(1, 1, 1))

    def take_up_all(self, likelihood: float = 1) -> None:
        for target in self.watcher.targets.values():
            if not target.is_wanted and self.choice.random() < likelihood:
                self.watcher.add_again(target.id, self.choice.random() < 0.7)

    def has_arrived(self) -> bool:
        assert self.final is not None
        return self.watcher.is_settled and all(
            target.documents == self.final[target.query] for target in self.watcher.targets.values()
        )

    def complaint(self) -> str:
        assert self.final is not None
        lines = [f"{self.watcher.log.name} doesn't reach the final state:"]
        for target in self.watcher.targets.values():
            seen, right = target.documents, self.final[target.query]
            different = {name for name in seen.keys() | right.keys() if seen.get(name) != right.get(name)}
            lines.append(f"{target.id} {QUERIES[target.query]}: {sorted(different)}, {target}"[:1000])
        return "\n".join(lines)
