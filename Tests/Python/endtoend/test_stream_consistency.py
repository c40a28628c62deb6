"""Many listeners, many writers, broken connections: every snapshot equals its queries' results at its read time.

Writers commit batches over a few collections and record their writes and times. Listeners over gRPC and WebChannel
watch queries of every kind, are cut, resume, and drop and add targets. Afterwards the model (`support/model.py`)
computes each query's result at each version, and every snapshot must equal that (`support/snapshots.py`). The threads'
actions follow from the seed; their interleaving does not.
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

from endtoend.crowd import LISTENERS, NAMES, QUERIES, WRITERS, CommitRequest, Listener, Writer
from support.calls import Calls
from support.http2 import Http2
from support.model import Commit, Entry, Query
from support.patience import PATIENCE
from support.program import BINARY, EFFORT, program
from support.snapshots import Judge
from support.streams import Listen
from support.watching import Watcher
from support.webchannel import ChannelRefused, WebListen
from support.wire import message_class

SNAPSHOTS = 12_000 * EFFORT
SETTLE_SECONDS_MAX = PATIENCE


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
        thread.join(PATIENCE)
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
    # The state according to the writers' answers equals the server's.
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


# Listeners that receive everything again


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
    """After a boundary both targets have one version."""
    one, other = (
        {name[2:]: shown.updated for name, shown in target.documents.items()} for target in watcher.targets.values()
    )
    assert one == other
    return one


@pytest.mark.parametrize("kind", ["grpc", "webchannel"])
@pytest.mark.emulator_differs("it doesn't hold changes back")
def test_a_slow_listener_gets_everything_anew_at_one_version(address: str, project: str, kind: str) -> None:
    """While the client does not read, more messages accumulate than are stored; the later messages are of one
    version for all targets.
    """
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
            # The reader's thread takes messages from the connection only as fast as the test takes them.
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
            while not watcher.process(stream.take()):
                pass
            boundaries += 1
        # It did not receive each commit: this is the purpose of the bound.
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
    """A listener that reconnects after every end of its stream."""

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
            assert self.is_up.wait(PATIENCE)
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
    """Tokens remain valid for a server that was killed and started again, and times do not decrease."""
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
            # Listeners that lag behind receive the rest from the next server.
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
    # Their tokens were accepted: they receive the missed changes.
    assert resets == 0
    for channel in channels:
        channel.close()
