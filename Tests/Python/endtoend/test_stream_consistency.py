"""Many listeners, many writers, broken connections: every snapshot is what its queries gave at its read time.

Writers commit batches over a few collections and note what they wrote and when; listeners over gRPC and WebChannel
watch queries of every kind, are cut, resume, and drop and take up targets. Afterwards the model (`support/model.py`)
works out each query's result at each version, and every snapshot must be that (`support/snapshots.py`). What the
threads do follows from the seed; how they meet does not.
"""

from __future__ import annotations

import os
import queue
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from support.calls import Calls
from support.http2 import Http2
from support.model import Commit, Entry, Moment, Query, Write, encode, entry
from support.program import BINARY, EFFORT, program
from support.snapshots import Boundary, Judge, Log
from support.streams import Listen
from support.watching import Target, Watcher
from support.webchannel import ChannelRefused, WebListen
from support.wire import message_class

SNAPSHOTS = 12_000 * EFFORT
WRITERS = 4
LISTENERS = 18
#: All writers together: what leaves the listeners time to see most commits one by one.
COMMITS_PER_SECOND = 120
SETTLE_SECONDS_MAX = 30

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
                # A member of a write that isn't in its mask is no business of the server's.
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
    """One thread that watches some queries and is in trouble most of the time."""

    def __init__(self, number: int, seed: int, kind: str, open: Callable[[], Any], project: str) -> None:
        self.choice = random.Random(f"listener {number} {seed}")
        self.kind = kind
        queries = self.choice.sample(range(len(QUERIES)), self.choice.choice((1, 2, 3, 4)))
        # Each query is watched by someone.
        queries = list(dict.fromkeys([number % len(QUERIES), (number + LISTENERS) % len(QUERIES), *queries]))
        name = f"listener {number} over {kind}"
        self.watcher = Watcher(name, f"projects/{project}/databases/(default)", QUERIES, open)
        self.watcher.spoil = self.spoil
        self.queries = queries
        #: Once the writers have ended: what each query gives.
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
                # Something happens meanwhile.
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
        """A client's own memory fails it: the count that it sends lets the server help."""
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


@pytest.mark.emulator_differs("it has snapshots that no read time explains")
def test_every_snapshot_is_the_truth_of_its_time(address: str, project: str) -> None:
    seed = int(os.environ.get("HEARTH_TEST_SEED", str(random.randrange(10**6))))
    print(f"HEARTH_TEST_SEED={seed}")
    began = time.monotonic()
    channels: list[grpc.Channel] = []

    def over_grpc() -> Listen:
        return Listen(channels[-1], project)

    def over_webchannel() -> WebListen:
        return WebListen(address, project)

    def over_http2() -> WebListen:
        return WebListen(address, project, way=Http2(address))

    def by_polls() -> WebListen:
        return WebListen(address, project, polls=True)

    kinds: list[tuple[str, Callable[[], Any]]] = [
        ("grpc", over_grpc),
        ("webchannel", over_webchannel),
        ("grpc", over_grpc),
        ("http2", over_http2),
        ("polls", by_polls),
    ]
    if wanted := os.environ.get("HEARTH_TEST_STREAMS"):
        kinds = [kind for kind in kinds if kind[0] in wanted.split(",")]
    channels.append(grpc.insecure_channel(address))
    done = threading.Event()
    calls = Calls(address)
    writers = [Writer(number, seed, calls, project, done) for number in range(WRITERS)]
    listeners = [Listener(number, seed, *kinds[number % len(kinds)], project) for number in range(LISTENERS)]
    threads = [threading.Thread(target=one.run, daemon=True) for one in (*writers, *listeners)]
    for thread in threads:
        thread.start()
    while sum(one.snapshots for one in listeners) < SNAPSHOTS:
        time.sleep(0.1)
        assert not [one.fault for one in (*writers, *listeners) if one.fault]
    done.set()
    for thread in threads[:WRITERS]:
        thread.join(30)
    assert not [one.fault for one in writers if one.fault]

    judge = Judge([commit for writer in writers for commit in writer.commits], QUERIES)
    assert judge.faults == []
    last = judge.commits[-1].time
    final = [judge.result_at(number, last) for number in range(len(QUERIES))]
    for one in listeners:
        one.deadline = time.monotonic() + SETTLE_SECONDS_MAX
        one.final = final
    for one in listeners:
        assert one.is_done.wait(SETTLE_SECONDS_MAX + 10), one.watcher.log.name
    assert not [one.fault for one in listeners if one.fault]
    calls.close()
    channels[0].close()

    faults = [fault for one in listeners for fault in judge.check(one.watcher.log)]
    snapshots = sum(one.snapshots for one in listeners)
    counts: Counter[str] = Counter()
    for one in listeners:
        counts += one.watcher.counts
    print(
        f"{snapshots} snapshots of {len(judge.commits)} commits in {time.monotonic() - began:.0f} s: {dict(counts)}",
    )
    assert faults == [], "\n".join([f"seed {seed}: {len(faults)} faults", *faults[:10]])
    assert snapshots >= SNAPSHOTS and counts["resumes"] > 100
    assert counts["bloom filters"] > 3 and counts["mismatches"] > 0
    # What the writers' answers made us believe is what the server has.
    assert {name: (d.created, d.updated) for name, d in judge.final.items()} == stored(address, project)


def stored(address: str, project: str) -> dict[str, tuple[int, int]]:
    calls = Calls(address)
    root = f"projects/{project}/databases/(default)/documents"
    found = {}
    for collection in {name.split("/")[-2] for name in NAMES}:
        request = message_class("RunQueryRequest")(parent=root)
        request.structured_query.from_.add(collection_id=collection, all_descendants=True)
        for answer in calls("RunQuery", request):
            if answer.HasField("document"):
                document = answer.document
                times = document.create_time.ToMicroseconds(), document.update_time.ToMicroseconds()
                found[document.name.removeprefix(root + "/")] = times
    calls.close()
    return found


# Listeners that get everything anew


LARGE = "x" * 100_000
PAIRS = 30
BOTH = (Query("c"), Query("d"))


def write_pairs(calls: Calls, database: str, number: int) -> None:
    """Each commit makes documents of both collections say the same."""
    for place in range(PAIRS):
        request = CommitRequest(database=database)
        for collection in ("c", "d"):
            made = request.writes.add().update
            made.name = f"{database}/documents/{collection}/p{place}"
            made.fields["n"].integer_value = number
            made.fields["s"].string_value = LARGE
        calls("Commit", request)


def assert_pairs(watcher: Watcher) -> dict[str, int]:
    """After a boundary: both targets show one version."""
    one, other = (
        {name[2:]: shown.updated for name, shown in target.documents.items()} for target in watcher.targets.values()
    )
    assert one == other
    return one


@pytest.mark.parametrize("kind", ["grpc", "webchannel"])
@pytest.mark.emulator_differs("it doesn't hold changes back")
def test_a_slow_listener_gets_everything_anew_at_one_version(address: str, project: str, kind: str) -> None:
    """While nobody reads, more piles up than is kept; what comes then is of one version for all targets."""
    database = f"projects/{project}/databases/(default)"
    calls = Calls(address)
    with grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", -1)]) as channel:
        stream = Listen(channel, project) if kind == "grpc" else WebListen(address, project)
        watcher = Watcher(kind, database, BOTH, lambda: stream)
        watcher.connect()
        write_pairs(calls, database, 0)
        for number, query in ((2, 0), (4, 1)):
            watcher.add(number, query)
            while not watcher.process(stream.take()):
                pass
        reads_by = threading.Event()
        if kind == "grpc":
            # The reader's thread takes messages from the connection only as fast as they are taken from it.
            stream.hold(reads_by)
        else:
            stream.session.detach()
        for number in range(1, 9):
            write_pairs(calls, database, number)
        reads_by.set()
        if kind != "grpc":
            stream.session.attach()
        last = {
            document.name.rsplit("/", 1)[1]: document.update_time.ToMicroseconds()
            for answer in calls("RunQuery", everything(database, "c"))
            if answer.HasField("document") and (document := answer.document)
        }
        boundaries = 0
        while watcher.targets[2].undo or assert_pairs(watcher) != last:
            while not watcher.process(stream.take(30)):
                pass
            boundaries += 1
        # It was not told of each commit: that is what the bound is for.
        assert boundaries < 8 * PAIRS / 2 and watcher.counts["resets"] >= 2
        stream.cancel()
    calls.close()


def everything(database: str, collection: str) -> Any:
    request = message_class("RunQueryRequest")(parent=f"{database}/documents")
    request.structured_query.from_.add(collection_id=collection)
    return request


@pytest.mark.emulator_differs("it forgets its listeners' documents without telling them")
def test_clearing_is_seen_by_all_targets_at_once(address: str, project: str, channel: grpc.Channel, rest: Any) -> None:
    database = f"projects/{project}/databases/(default)"
    calls = Calls(address)
    write_pairs(calls, database, 0)
    calls.close()
    stream = Listen(channel, project)
    watcher = Watcher("cleared", database, BOTH, lambda: stream)
    watcher.connect()
    for number, query in ((2, 0), (4, 1)):
        watcher.add(number, query)
        while not watcher.process(stream.take()):
            pass
    assert len(assert_pairs(watcher)) == PAIRS
    assert rest.send("DELETE", f"/emulator/v1/{database}/documents").status == 200
    while not watcher.process(stream.take()):
        pass
    assert assert_pairs(watcher) == {}
    stream.cancel()


# Servers that are killed


class Survivor:
    """A listener that takes whatever ends its stream for a reason to come back."""

    def __init__(self, name: str, queries: Sequence[int], open: Callable[[], Any], database: str) -> None:
        self.watcher = Watcher(name, database, QUERIES, open)
        self.queries = queries
        self.is_up = threading.Event()
        self.final: list[dict[str, Entry]] | None = None
        self.fault: BaseException | None = None

    def run(self) -> None:
        watcher = self.watcher
        try:
            self.is_up.wait()
            watcher.connect()
            for number, query in enumerate(self.queries):
                watcher.add(2 * number + 2, query)
            while not self.has_arrived():
                try:
                    watcher.process(watcher.stream.take(0.2))
                except queue.Empty:
                    continue
                except (grpc.RpcError, OSError, ChannelRefused):
                    self.come_back()
            watcher.stream.cancel()
        except BaseException as error:  # noqa: BLE001 - told to the test's thread
            self.fault = error

    def come_back(self) -> None:
        while True:
            self.watcher.stream.cancel()
            assert self.is_up.wait(30)
            try:
                return self.watcher.reconnect()
            except (grpc.RpcError, OSError, ChannelRefused):
                time.sleep(0.05)

    def has_arrived(self) -> bool:
        return (
            self.final is not None
            and self.watcher.is_settled
            and all(target.documents == self.final[target.query] for target in self.watcher.targets.values())
        )


@pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")
def test_listeners_survive_the_death_of_the_server(tmp_path: Path) -> None:
    """Tokens hold for a server that was killed and started again, and times don't go back."""
    seed = int(os.environ.get("HEARTH_TEST_SEED", str(random.randrange(10**6))))
    print(f"HEARTH_TEST_SEED={seed}")
    database = "projects/p/databases/(default)"
    address = ""
    channels: list[grpc.Channel] = []

    def over_grpc() -> Listen:
        channels.append(grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]))
        return Listen(channels[-1], "p")

    def over_webchannel() -> WebListen:
        return WebListen(address, "p")

    survivors = [
        Survivor(f"survivor {n}", range(n, len(QUERIES), 6), over_webchannel if n % 2 else over_grpc, database)
        for n in range(6)
    ]
    threads = [threading.Thread(target=one.run, daemon=True) for one in survivors]
    for thread in threads:
        thread.start()
    commits: list[Commit] = []
    resets = 0
    for life in range(4 * EFFORT):
        with program(tmp_path, "--data", str(tmp_path / "data")) as server:
            address = server.address
            for one in survivors:
                one.is_up.set()
            calls = Calls(address)
            writer = Writer(life, seed, calls, "p", threading.Event())
            for _ in range(80):
                names = writer.choice.sample(NAMES, writer.choice.choice((1, 2, 3)))
                writer.commit([writer.write(name) for name in names])
            commits += writer.commits
            calls.close()
            for one in survivors:
                one.is_up.clear()
            # Whoever lags behind sees the rest in the next life.
            server.kill()
    judge = Judge(commits, QUERIES)
    assert judge.faults == []
    with program(tmp_path, "--data", str(tmp_path / "data")) as server:
        address = server.address
        final = [judge.result_at(number, judge.commits[-1].time) for number in range(len(QUERIES))]
        for one in survivors:
            one.final = final
            one.is_up.set()
        for one, thread in zip(survivors, threads, strict=True):
            thread.join(SETTLE_SECONDS_MAX)
            assert not thread.is_alive(), f"{one.watcher.log.name} doesn't reach the final state"
    assert not [one.fault for one in survivors if one.fault], f"seed {seed}"
    faults = [fault for one in survivors for fault in judge.check(one.watcher.log)]
    assert faults == [], "\n".join([f"seed {seed}: {len(faults)} faults", *faults[:10]])
    for one in survivors:
        assert one.watcher.counts["resumes"] > 0 and len(one.watcher.log.boundaries) > 20
        resets += one.watcher.counts["resets"]
    # Their tokens were understood: what is told is what they missed.
    assert resets == 0
    for channel in channels:
        channel.close()


# The judge is judged


class Honest:
    """A history, and the log of a listener who saw each of its commits right."""

    def __init__(self, seed: int) -> None:
        writer = Writer(0, seed, None, "p", threading.Event())  # type: ignore[arg-type]
        self.commits = []
        for number in range(300):
            writes = [writer.write(name) for name in writer.choice.sample(NAMES, 3)]
            plain = [Write(one.name, one.fields, one.mask, one.transforms) for one in writes]
            self.commits.append(Commit(1000 * (number + 1), tuple(plain), Moment(1000 * number)))
        self.judge = Judge(self.commits, QUERIES)
        self.log = Log("honest", {number: number for number in range(len(QUERIES))})
        before: list[dict[str, Entry]] = [{} for _ in QUERIES]
        documents: dict[str, Any] = {}
        for commit in self.commits:
            commit.apply(documents)
            changes = []
            for number, query in enumerate(QUERIES):
                now = {
                    d.name: entry(d.created, d.updated, query.shown(d.fields)) for d in query.result(documents.values())
                }
                for name in before[number].keys() | now.keys():
                    if before[number].get(name) != now.get(name):
                        changes.append((number, name, now.get(name)))
                before[number] = now
            self.log.boundaries.append(Boundary(commit.time + 7, changes, tuple(self.log.queries)))

    def altered(self, place: int, **changes: Any) -> Log:
        boundaries = list(self.log.boundaries)
        boundaries[place] = Boundary(**(vars(boundaries[place]) | changes))
        return Log("altered", self.log.queries, boundaries)

    def place(self, wanted: Callable[[Boundary], bool]) -> int:
        return next(n for n, boundary in enumerate(self.log.boundaries) if n > 50 and wanted(boundary))


@pytest.fixture(scope="module")
def honest() -> Honest:
    return Honest(1)


def test_the_judge_finds_no_fault_with_an_honest_listener(honest: Honest) -> None:
    assert honest.judge.check(honest.log) == []
    assert all(len(timeline.times) > 10 for timeline in honest.judge.timelines)
    merged = Log("merged", honest.log.queries)
    for number in range(0, 300, 3):
        three = honest.log.boundaries[number : number + 3]
        merged.boundaries.append(
            Boundary(three[-1].read_time, [c for one in three for c in one.changes], three[-1].shown)
        )
    assert honest.judge.check(merged) == []


def test_the_judge_has_two_minds_that_agree(honest: Honest) -> None:
    """What is kept up commit by commit is what working it out anew gives."""
    for time_ in range(0, 300_000, 17_000):
        for number in range(len(QUERIES)):
            plain = 0
            for name, shown in honest.judge.result_at(number, time_).items():
                plain ^= hash((name, shown))
            assert honest.judge.timelines[number].at(time_) == plain


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("fault", ["torn", "lost", "late", "early", "stale value", "back in time", "of no time"])
def test_the_judge_finds_faults(honest: Honest, fault: str, seed: int) -> None:
    choice = random.Random(seed)
    changing = [n for n, one in enumerate(honest.log.boundaries) if n > 20 and len({c[1] for c in one.changes}) > 1]
    place = choice.choice(changing[:-5])
    boundary, following = honest.log.boundaries[place : place + 2]
    changes = list(boundary.changes)
    match fault:
        case "torn":
            # The rest of a commit comes by the next boundary.
            half = [change for change in changes if change[1] == changes[0][1]]
            rest = [change for change in changes if change[1] != changes[0][1]]
            log = honest.altered(place, changes=half)
            log.boundaries[place + 1] = Boundary(following.read_time, [*rest, *following.changes], following.shown)
        case "lost":
            changes.pop(choice.randrange(len(changes)))
            log = honest.altered(place, changes=changes)
        case "late":
            log = honest.altered(place, changes=[])
            log.boundaries[place + 1] = Boundary(following.read_time, [*changes, *following.changes], following.shown)
        case "early":
            log = honest.altered(place, read_time=boundary.read_time - 1000)
        case "stale value":
            # Of a document that is somewhere, from here on.
            places = [
                n for n in changing if n >= place and any(shown for _, _, shown in honest.log.boundaries[n].changes)
            ]
            changes = list(honest.log.boundaries[places[0]].changes)
            number = choice.choice([n for n, change in enumerate(changes) if change[2] is not None])
            target, name, shown = changes[number]
            changes[number] = (target, name, shown._replace(digest=shown.digest ^ 1))
            log = honest.altered(places[0], changes=changes)
        case "back in time":
            log = honest.altered(place, read_time=honest.log.boundaries[place - 1].read_time - 1)
        case "of no time":
            target = changes[0][0]
            nobody = entry(1, 1, {"n": 1})
            log = honest.altered(place, changes=[*changes, (target, "a/stranger", nobody)])
    assert honest.judge.check(log) != []


def test_two_commits_at_one_time_are_a_fault(honest: Honest) -> None:
    twice = [*honest.commits, Commit(honest.commits[5].time, (Write("a/d00", {"n": 1}),))]
    assert Judge(twice, QUERIES).faults
