"""Readers of the change feed that are cut at random rebuild the database, while others write and the server is killed.

Each commit names its writer and its number, and how many documents of each collection it changes. So every reader
knows of every commit whether it came, whether it came whole, and whether there is a gap, also one between a snapshot
and its tail.

    HEARTH_TEST_SECONDS=600 pytest endtoend/test_changes_cut.py
"""

from __future__ import annotations

import http.client
import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from support.patience import PATIENCE
from support.program import BINARY, Program, assert_sound

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

SECONDS = float(os.environ.get("HEARTH_TEST_SECONDS", "15"))
WRITERS = 4
ACCOUNTS = 12
BATCH = 500
#: Of the feed. Readers are away for less; one sleeps for longer in long runs.
RETENTION_SECONDS = 30
#: How much later than that a position may be taken.
SLACK_SECONDS = 10
ROOT = "projects/demo-hearth/databases/(default)/documents"
FEED = "/hearth/v1/changes"
SERVER_IS_GONE = (OSError, http.client.HTTPException)

Fields = dict[str, int]


class Cut(Exception):
    """The test has cut the reader."""


class Server:
    """A program that is killed now and then."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "hearth.json").write_text(json.dumps({"changes": {"retention": f"{RETENTION_SECONDS}s"}}))
        self.program = Program(folder)
        self.kills = 0

    def kill_and_start(self) -> None:
        self.program.kill()
        self.kills += 1
        self.program = Program(self.folder)

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.program.port, timeout=PATIENCE)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None)
            answer = connection.getresponse()
            content = answer.read()
            return answer.status, json.loads(content) if content else None
        finally:
            connection.close()


def collection(path: str) -> str:
    return path.rsplit("/", 1)[0]


def encoded(fields: Fields) -> dict[str, Any]:
    return {name: {"integerValue": str(number)} for name, number in fields.items()}


def decoded(document: dict[str, Any]) -> Fields:
    return {name: int(value["integerValue"]) for name, value in document.get("fields", {}).items()}


def relative(name: str) -> str:
    return name.split("/documents/", 1)[1]


# Writers


class Stopped(threading.Thread):
    """A thread whose faults are the test's."""

    def __init__(self, is_over: threading.Event) -> None:
        super().__init__(daemon=True)
        self.is_over = is_over
        self.fault: BaseException | None = None

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:  # noqa: BLE001 - the test's thread raises it
            self.fault = error
            self.is_over.set()

    def work(self) -> None:
        raise NotImplementedError


class Writer(Stopped):
    """Commits sets, deletes, batches and transactions; knows which documents of its own there are."""

    def __init__(self, server: Server, number: int, seed: str, is_over: threading.Event) -> None:
        super().__init__(is_over)
        self.server = server
        self.number = number
        self.random = random.Random(seed)
        self.mark = f"marks/w{number}"
        self.count = 0
        self.own: set[str] = set()
        self.kinds: Counter[str] = Counter()

    def work(self) -> None:
        kinds: list[Callable[[], None]] = [self.set, self.set, self.pair, self.transfer, self.transfer, self.batch]
        while not self.is_over.is_set():
            self.random.choice(kinds)()
            # The retention holds what all of them write; readers in Python must follow.
            time.sleep(self.random.expovariate(12))

    def set(self) -> None:
        path = f"sets/w{self.number}-{self.random.randrange(40)}"
        self.write("set", {path: self.random.randrange(10**6)})

    def pair(self) -> None:
        number = self.random.randrange(10)
        paths = [f"pairs/w{self.number}-{number}{letter}" for letter in "ab"]
        anchor = f"pairs/w{self.number}-anchor"
        value = None if paths[0] in self.own and self.random.random() < 0.5 else self.random.randrange(10**6)
        self.write("pair", {**{path: value for path in paths}, anchor: 1})

    def batch(self) -> None:
        """All documents of a collection at once; half of them are deleted when they are there."""
        if self.random.random() < 0.5:
            return
        paths = [f"batches/w{self.number}/docs/{number:04d}" for number in range(BATCH - 1)]
        value = self.random.randrange(10**6)
        halves = paths[0] in self.own and self.random.random() < 0.5
        self.write(
            "batch",
            {
                path: None if halves and path in self.own and index % 2 == 0 else value
                for index, path in enumerate(paths)
            },
        )

    def transfer(self) -> None:
        status, begun = self.server_ask("POST", f"/v1/{ROOT}:beginTransaction", {"options": {"readWrite": {}}})
        if status != 200:
            return
        accounts = [f"accounts/{number}" for number in self.random.sample(range(ACCOUNTS), 2)]
        status, answer = self.server_ask(
            "POST",
            f"/v1/{ROOT}:batchGet",
            {"documents": [f"{ROOT}/{path}" for path in accounts], "transaction": begun["transaction"]},
        )
        if status != 200:
            return
        found = {relative(each["found"]["name"]): decoded(each["found"]) for each in answer if "found" in each}
        amount = self.random.randrange(-100, 100)
        values = {path: found[path]["n"] + sign * amount for path, sign in zip(accounts, (1, -1), strict=True)}
        self.write("transfer", values, begun["transaction"])

    def server_ask(self, method: str, path: str, body: object) -> tuple[int, Any]:
        try:
            return self.server.ask(method, path, body)
        except SERVER_IS_GONE:
            time.sleep(0.05)
            return 503, None

    def write(self, kind: str, values: dict[str, int | None], transaction: str | None = None) -> None:
        count = self.count + 1
        values = {**values, self.mark: count}
        sizes = Counter(collection(path) for path in values)
        writes: list[dict[str, Any]] = []
        for path, value in values.items():
            if value is None:
                writes.append({"delete": f"{ROOT}/{path}"})
                continue
            fields = {"n": value, "writer": self.number, "count": count, "of": sizes[collection(path)]}
            if path == self.mark:
                fields["lines"] = len(values)
            writes.append({"update": {"name": f"{ROOT}/{path}", "fields": encoded(fields)}})
        body = {"writes": writes, **({"transaction": transaction} if transaction else {})}
        status, _ = self.server_ask("POST", f"/v1/{ROOT}:commit", body)
        if status not in (200, 503, 409, 400, 429):
            raise AssertionError(status)
        if status != 200 and not self.is_made(count):
            return
        self.count = count
        self.kinds[kind] += 1
        for path, value in values.items():
            (self.own.discard if value is None else self.own.add)(path)

    def is_made(self, count: int) -> bool:
        """Whether the commit was made, though its answer says otherwise or was lost."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            status, found = self.server_ask("GET", f"/v1/{ROOT}/{self.mark}", None)
            if status == 404:
                return False
            if status == 200:
                return decoded(found)["count"] == count
        raise AssertionError("the server doesn't come back")


# Readers


@dataclass
class Commit:
    """What has come of a commit."""

    time: str
    lines: dict[str, Fields | None] = field(default_factory=dict)


class Judge:
    """Knows what a reader must have after each commit; independent of how it reads."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.total: int | None = None
        self.commits = 0

    def begin(self, copy: dict[str, Fields]) -> None:
        """A snapshot is complete."""
        self.counts = {fields["writer"]: fields["count"] for path, fields in copy.items() if path.startswith("marks/")}
        accounts = [fields["n"] for path, fields in copy.items() if path.startswith("accounts/")]
        self.total = sum(accounts) if accounts else None

    def end(self, commit: Commit, copy: dict[str, Fields], sees: Callable[[str], bool]) -> None:
        """A commit is complete; `copy` is the state before it."""
        self.commits += 1
        written = [fields for fields in commit.lines.values() if fields is not None]
        assert written, "a commit without its anchor"
        assert len({(fields["writer"], fields["count"]) for fields in written}) == 1, ("commits are mixed", commit)
        for name, size in Counter(collection(path) for path in commit.lines).items():
            one = next(fields for path, fields in commit.lines.items() if collection(path) == name and fields)
            assert one["of"] == size, ("a commit in part", name, size, one)
        if self.total is not None:
            more = sum(
                (f or {"n": 0})["n"] - copy.get(p, {"n": 0})["n"]
                for p, f in commit.lines.items()
                if p.startswith("accounts/")
            )
            assert more == 0, ("half of a transfer", commit)
        writer, count = written[0]["writer"], written[0]["count"]
        mark = commit.lines.get(f"marks/w{writer}")
        if sees(f"marks/w{writer}"):
            assert mark is not None
            if sees("accounts/0") and sees("batches/w0/docs/0"):
                assert mark["lines"] == len(commit.lines), ("a commit in part", mark, len(commit.lines))
            known = self.counts.get(writer, 0)
            assert count == known + 1, ("a gap" if count > known else "again", writer, known, count)
        else:
            assert count > self.counts.get(writer, 0), ("again", writer, self.counts.get(writer), count)
        self.counts[writer] = count


#: The patterns of readers, and which paths they match.
PATTERNS: dict[str, Callable[[str], bool]] = {
    "": lambda path: True,
    "accounts/{id}": lambda path: path.startswith("accounts/"),
    "batches/**": lambda path: path.startswith("batches/"),
    "**/docs/{d}": lambda path: "/docs/" in path,
    "*/w*": lambda path: path.count("/") == 1 and path.split("/")[1].startswith("w"),
    "marks/w1": lambda path: path == "marks/w1",
}


class Reader(Stopped):
    """Keeps a copy. Atomic ones change it at the end of a commit, as hearth-change-copy does; others with each line."""

    def __init__(
        self,
        server: Server,
        name: str,
        seed: str,
        is_over: threading.Event,
        *,
        pattern: str,
        is_sse: bool,
        is_atomic: bool,
    ) -> None:
        super().__init__(is_over)
        self.server = server
        self.name = name
        self.random = random.Random(seed)
        self.pattern = pattern
        self.sees = PATTERNS[pattern]
        self.is_sse = is_sse
        self.is_atomic = is_atomic
        self.token = ""
        self.copy: dict[str, Fields] = {}
        #: The state of the last whole commit, which is `copy` but within one.
        self.state: dict[str, Fields] = {}
        self.open: Commit | None = None
        self.snapshot: dict[str, Fields] | None = None
        #: A snapshot was asked for, and nothing of it has come.
        self.is_anew = True
        self.judge = Judge()
        self.counts: Counter[str] = Counter()

    def work(self) -> None:
        while not self.is_over.is_set():
            if self.random.random() < 0.03:
                self.token = ""
            try:
                self.read(is_last=False)
            except Cut:
                self.counts["cut"] += 1
            except SERVER_IS_GONE:
                self.counts["lost"] += 1
                time.sleep(0.02)

    def finish(self) -> None:
        """Reads to the present of a server at rest."""
        refusals = -1
        while refusals != self.counts["410"]:
            refusals = self.counts["410"]
            self.read(is_last=True)
        assert self.open is None, (self.name, self.open)

    def read(self, *, is_last: bool) -> None:
        query = [f"after={self.token}" if self.token else "snapshot=true"]
        if self.pattern:
            query.append(f"document={quote(self.pattern, safe='')}")
        if self.random.random() < 0.5:
            query.append("before=false")
        if not is_last:
            query.append(f"wait={self.random.choice(['0', '0.3', 'forever', 'forever'])}")
            if self.random.random() < 0.2:
                query.append(f"limit={self.random.randrange(1, 2000)}")
        self.is_anew = not self.token or self.snapshot is not None
        self.open = None
        self.snapshot = None
        for token, line in self.lines("&".join(query), is_last):
            self.take(token, line)
        assert not is_last or self.snapshot is None, (self.name, "a snapshot without an end")

    def lines(self, query: str, is_last: bool) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each line that has come whole, until the end or the cut, which is anywhere."""
        bytes_left = int(10 ** self.random.uniform(1.5, 6.5))
        end = time.monotonic() + self.random.expovariate(1)
        connection = http.client.HTTPConnection("127.0.0.1", self.server.program.port, timeout=20 if is_last else 1)
        try:
            headers = {"accept": "text/event-stream"} if self.is_sse else {}
            if self.is_sse and self.token and self.random.random() < 0.5:
                headers["last-event-id"] = self.token
            connection.request("GET", f"{FEED}?{query}", headers=headers)
            answer = connection.getresponse()
            self.counts["requests"] += 1
            if answer.status == 410:
                self.counts["410"] += 1
                self.token = ""
                return
            if answer.status != 200:
                assert answer.status in (429, 503), (self.name, answer.status, answer.read())
                return
            rest = b""
            while True:
                part = answer.read1(self.random.choice([7, 100, 1 << 12, 1 << 16]))
                if not part:
                    return
                if not is_last:
                    part = part[:bytes_left]
                    bytes_left -= len(part)
                rest += part
                *whole, rest = rest.split(b"\n\n" if self.is_sse else b"\n")
                for each in whole:
                    yield self.parsed(each)
                if not is_last and (bytes_left <= 0 or time.monotonic() > end):
                    self.counts["within a line"] += bool(rest)
                    raise Cut
        except TimeoutError as error:
            raise Cut from error
        finally:
            connection.close()

    def parsed(self, line: bytes) -> tuple[str, dict[str, Any]]:
        if not self.is_sse:
            parsed = json.loads(line)
            return parsed.get("token", ""), parsed
        parts = dict(part.split(": ", 1) for part in line.decode().split("\n") if part.split(": ", 1)[0])
        if "data" not in parts:
            return parts.get("id", ""), {"heartbeat": ""}
        parsed = json.loads(parts["data"])
        if "error" not in parsed:
            assert (parts["id"], parts["event"]) == (parsed["token"], parsed["type"])
        return parts.get("id", ""), parsed

    def take(self, token: str, line: dict[str, Any]) -> None:
        if error := line.get("error"):
            assert error["code"] in (410, 429, 503), (self.name, error)
            if error["code"] == 410:
                self.counts["410"] += 1
                self.token = ""
            return
        if "heartbeat" in line:
            self.counts["heartbeats"] += 1
            if token:
                self.end_empty_snapshot()
                assert self.open is None and self.snapshot is None, (self.name, "a position within a commit")
                self.token = token
            return
        self.counts["lines"] += 1
        path = relative(line["document"])
        assert self.sees(path), (self.name, path)
        after = decoded(line["after"]) if "after" in line else None
        if line["type"] == "snapshot":
            self.take_snapshot(token, path, after, line)
            return
        assert self.snapshot is None, (self.name, "a snapshot without an end")
        self.end_empty_snapshot()
        if self.open is None:
            self.open = Commit(line["time"])
        assert self.open.time == line["time"], (self.name, "a commit without an end", self.open, line)
        assert path not in self.open.lines, (self.name, "twice", path)
        before = self.state.get(path)
        assert line["type"] == ("created" if before is None else "deleted" if after is None else "updated"), (
            self.name,
            line["type"],
            path,
        )
        if "before" in line:
            assert decoded(line["before"]) == before, (self.name, path)
        self.open.lines[path] = after
        if not self.is_atomic:
            put(self.copy, path, after)
            self.token = token
        if line.get("last"):
            self.judge.end(self.open, self.state, self.sees)
            for changed, fields in self.open.lines.items():
                put(self.state, changed, fields)
                put(self.copy, changed, fields)
            self.token = token
            self.open = None

    def end_empty_snapshot(self) -> None:
        if self.is_anew:
            self.is_anew = False
            self.state, self.copy = {}, {}
            self.judge.begin({})

    def take_snapshot(self, token: str, path: str, after: Fields | None, line: dict[str, Any]) -> None:
        assert after is not None
        self.is_anew = False
        if self.snapshot is None:
            self.snapshot = {}
            if not self.is_atomic:
                self.copy = {}
        assert path not in self.snapshot, (self.name, "twice in a snapshot", path)
        self.snapshot[path] = after
        if not self.is_atomic:
            self.copy[path] = after
            self.token = token
        if line.get("last"):
            self.state = self.snapshot
            self.copy = dict(self.snapshot)
            self.judge.begin(self.state)
            self.token = token
            self.snapshot = None
            self.counts["snapshots"] += 1


def put(copy: dict[str, Fields], path: str, fields: Fields | None) -> None:
    if fields is None:
        copy.pop(path, None)
    else:
        copy[path] = fields


class Sleeper(Stopped):
    """Is away for longer than the retention: its position must be gone, and a snapshot goes on."""

    def __init__(self, server: Server, is_over: threading.Event) -> None:
        super().__init__(is_over)
        self.server = server
        self.refused = 0

    def work(self) -> None:
        while True:
            token = self.position()
            # All that is committed later than this moment is behind the position.
            time.sleep(0.5)
            if self.is_over.wait(RETENTION_SECONDS + SLACK_SECONDS):
                return
            assert self.status(token) == 410
            self.refused += 1

    def position(self) -> str:
        while True:
            try:
                _, content = self.get("snapshot=true&document=marks/w0")
                return json.loads(content.splitlines()[-1])["token"]
            except (*SERVER_IS_GONE, IndexError):
                time.sleep(0.1)

    def status(self, token: str) -> int:
        while True:
            try:
                return self.get(f"after={token}&limit=1")[0]
            except SERVER_IS_GONE:
                time.sleep(0.1)

    def get(self, query: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.program.port, timeout=PATIENCE)
        try:
            connection.request("GET", f"{FEED}?{query}")
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


# The test


def documents(server: Server, name: str) -> dict[str, Fields]:
    found: dict[str, Fields] = {}
    page = ""
    while True:
        status, answer = server.ask("GET", f"/v1/{ROOT}/{name}?pageSize=300&pageToken={quote(page, safe='')}")
        assert status == 200
        for document in answer.get("documents", []):
            found[relative(document["name"])] = decoded(document)
        page = answer.get("nextPageToken", "")
        if not page:
            return found


def begin_accounts(server: Server) -> None:
    fields = encoded({"n": 1000, "writer": 99, "count": 1, "of": ACCOUNTS})
    writes = [{"update": {"name": f"{ROOT}/accounts/{number}", "fields": fields}} for number in range(ACCOUNTS)]
    assert server.ask("POST", f"/v1/{ROOT}:commit", {"writes": writes})[0] == 200


def test_readers_cut_at_random_rebuild_the_database(tmp_path: Path) -> None:
    seed = os.environ.get("HEARTH_TEST_SEED") or str(random.randrange(10**6))
    print(f"HEARTH_TEST_SEED={seed}")
    server = Server(tmp_path)
    try:
        begin_accounts(server)
        writing, reading = threading.Event(), threading.Event()
        writers = [Writer(server, number, f"{seed} w{number}", writing) for number in range(WRITERS)]
        readers = [
            Reader(
                server,
                f"{pattern or 'all'} {'events' if is_sse else 'lines'} {'atomic' if is_atomic else 'by line'}",
                f"{seed} r{number}",
                reading,
                pattern=pattern,
                is_sse=is_sse,
                is_atomic=is_atomic,
            )
            for number, (pattern, is_sse, is_atomic) in enumerate(
                [
                    ("", False, True),
                    ("", False, False),
                    ("", True, True),
                    *[(pattern, index % 2 == 0, index % 3 == 0) for index, pattern in enumerate(PATTERNS) if pattern],
                ]
            )
        ]
        sleeper = Sleeper(server, writing)
        threads: list[Stopped] = [*writers, *readers, sleeper]
        for thread in threads:
            thread.start()
        choice = random.Random(f"{seed} kills")
        end = time.monotonic() + SECONDS
        while (left := end - time.monotonic()) > 0 and not any(thread.fault for thread in threads):
            # The moment is the test's subject: nothing is awaited.
            time.sleep(min(left, choice.uniform(1, 10)))
            if left > 3:
                server.kill_and_start()
        for event, members in ((writing, [*writers, sleeper]), (reading, readers)):
            event.set()
            for thread in members:
                thread.join(PATIENCE)
                assert not thread.is_alive()
        for thread in threads:
            if thread.fault:
                raise thread.fault
        judge(server, writers, readers)
        report(server, writers, readers, sleeper)
        assert sleeper.refused > 0 or SECONDS < RETENTION_SECONDS + SLACK_SECONDS + 15
    finally:
        server.program.kill()
    assert_sound(tmp_path / "hearth-data")


def judge(server: Server, writers: list[Writer], readers: list[Reader]) -> None:
    present: dict[str, Fields] = {}
    names = [f"batches/w{number}/docs" for number in range(WRITERS)]
    for name in ["accounts", "marks", "pairs", "sets", *names]:
        present |= documents(server, name)
    assert sum(fields["n"] for path, fields in present.items() if path.startswith("accounts/")) == 1000 * ACCOUNTS
    for writer in writers:
        assert present[writer.mark]["count"] == writer.count
    for reader in readers:
        reader.finish()
        expected = {path: fields for path, fields in present.items() if reader.sees(path)}
        assert reader.copy == expected, reader.name
        assert reader.state == expected, reader.name


def report(server: Server, writers: list[Writer], readers: list[Reader], sleeper: Sleeper) -> None:
    made = sum((writer.kinds for writer in writers), Counter())
    print(
        f"{SECONDS:.0f} s, {server.kills} kills, {sum(made.values())} commits {dict(made)}, {sleeper.refused} refusals"
    )
    for reader in readers:
        print(f"{reader.name}: {reader.judge.commits} commits whole, {dict(reader.counts)}")
    assert all(reader.counts["cut"] and reader.judge.commits for reader in readers)


def commit(count: int, **lines: int | None) -> Commit:
    """Of writer 1; a document of the mark unless it is left out."""
    paths = {path.replace("_", "/"): number for path, number in lines.items()}
    sizes = Counter(collection(path) for path in paths)
    fields = {"writer": 1, "count": count}
    made = Commit("")
    for path, number in paths.items():
        made.lines[path] = None if number is None else {"n": number, **fields, "of": sizes[collection(path)]}
        if path.startswith("marks/") and (mark := made.lines[path]):
            mark["lines"] = len(paths)
    return made


def test_the_judge_finds_faults() -> None:
    everything = PATTERNS[""]
    begin = {"accounts/0": {"n": 10}, "accounts/1": {"n": 10}, "marks/w1": {"n": 4, "writer": 1, "count": 4}}

    def judged(*commits: Commit) -> None:
        of = Judge()
        of.begin(begin)
        for each in commits:
            of.end(each, begin, everything)

    good = commit(5, accounts_0=3, accounts_1=17, marks_w1=5)
    judged(good, commit(6, sets_a=1, marks_w1=6))
    part = commit(5, accounts_0=3, accounts_1=17, marks_w1=5)
    del part.lines["accounts/1"]
    other = commit(5, sets_a=1, marks_w1=5)
    del other.lines["sets/a"]
    mixed = commit(5, sets_a=1, marks_w1=5)
    mixed.lines["sets/a"] = {"n": 1, "writer": 1, "count": 4, "of": 1}
    faults = {
        "a gap": [commit(6, sets_a=1, marks_w1=6)],
        "again": [good, good],
        "half of a transfer": [part],
        "a collection is missing": [other],
        "two commits": [mixed],
        "money": [commit(5, accounts_0=3, accounts_1=18, marks_w1=5)],
    }
    for name, commits in faults.items():
        with pytest.raises(AssertionError):
            judged(*commits)
            print(name)
