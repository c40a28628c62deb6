"""The disk fails under the server: full, broken, slow, or without power. See `support/faults.c` for the method.

Invariants: a commit that cannot be stored fails with a clear status and leaves nothing behind; acknowledged data is not
damaged; reads continue; after the fault commits succeed again; `hearth check` finds nothing.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import random
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.faults import ALWAYS, MARK, OPEN, RENAME, SYNC, TRUNCATE, WRITE, Event, Faults, compiler, events
from support.patience import PATIENCE
from support.program import BINARY, EFFORT, Program, assert_sound, check

pytestmark = [
    pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program"),
    pytest.mark.skipif(compiler() is None, reason="no C compiler for the disk that fails"),
]

DATABASE = "/v1/projects/f/databases/(default)"
ROOT = DATABASE[4:] + "/documents"
#: This many bytes make a checkpoint due in a quiet moment.
BIG_BYTES, BIG_COUNT = 900_000, 5

ERRORS = {errno.ENOSPC: "No space left on device", errno.EIO: "Input/output error"}


def seed_of_this_run() -> int:
    return int(os.environ.get("HEARTH_TEST_SEED", str(random.randrange(10**6))))


class Model:
    """A server on the failing disk, and its expected content: document name to number."""

    def __init__(self, folder: Path, faults: Faults, seed: int) -> None:
        self.folder = folder
        self.faults = faults
        self.choice = random.Random(seed)
        self.documents: dict[str, int] = {}
        self.numbers = itertools.count(1)
        self.server = Program(folder, "--data", str(faults.data), environment=faults.environment)

    def restart(self) -> None:
        self.server = Program(self.folder, "--data", str(self.faults.data), environment=self.faults.environment)

    def end(self) -> None:
        if self.server.process.poll() is None:
            self.server.kill()

    def commit(self, writes: dict[str, int | None], big: int = 0) -> tuple[int, dict[str, Any]]:
        """The documents get their numbers, or are deleted. Recorded when acknowledged."""
        body = []
        for name, number in writes.items():
            path = f"{ROOT}/c/{name}"
            if number is None:
                body.append({"delete": path})
            else:
                fields: dict[str, Any] = {
                    "n": {"integerValue": str(number)},
                    "tags": {"arrayValue": {"values": [{"integerValue": str(number + i)} for i in range(3)]}},
                }
                if big:
                    fields["blob"] = {"stringValue": chr(97 + number % 26) * big}
                body.append({"update": {"name": path, "fields": fields}})
        status, answer = self.server.send("POST", f"{DATABASE}/documents:commit", {"writes": body})
        if status == 200:
            self.apply(self.documents, writes)
        return status, json.loads(answer)

    @staticmethod
    def apply(documents: dict[str, int], writes: dict[str, int | None]) -> None:
        for name, number in writes.items():
            if number is None:
                documents.pop(name, None)
            else:
                documents[name] = number

    def some_writes(self) -> dict[str, int | None]:
        number = next(self.numbers)
        names = self.choice.sample(range(12), 3)
        writes: dict[str, int | None] = {f"d{name}": number for name in names}
        if self.choice.random() < 0.3:
            writes[f"d{names[0]}"] = None
        return writes

    def contents(self) -> dict[str, int]:
        """By an index, so that documents and entries must agree."""
        query = {
            "from": [{"collectionId": "c"}],
            "select": {"fields": [{"fieldPath": "n"}]},
            "orderBy": [{"field": {"fieldPath": "n"}}],
        }
        status, answer = self.server.send("POST", f"{DATABASE}/documents:runQuery", {"structuredQuery": query})
        assert status == 200, answer
        found = [row["document"] for row in json.loads(answer) if "document" in row]
        return {one["name"].rsplit("/")[-1]: int(one["fields"]["n"]["integerValue"]) for one in found}

    def assert_holds(self, where: Any) -> None:
        assert self.contents() == self.documents, where

    def assert_refused(self, answer: tuple[int, dict[str, Any]], words: str, where: Any) -> None:
        status, body = answer
        assert status == 503, (where, body)
        assert body["error"]["status"] == "UNAVAILABLE", where
        assert words in body["error"]["message"], (where, body)


@contextmanager
def model(folder: Path, seed: int, journal: bool = False) -> Iterator[Model]:
    made = Model(folder, Faults(folder, folder / "hearth-data", journal), seed)
    try:
        yield made
    finally:
        made.end()


class TestEachCall:
    """Every single call of a commit fails once."""

    @pytest.mark.parametrize("code", ERRORS)
    @pytest.mark.parametrize("kind", [WRITE, SYNC], ids=["write", "sync"])
    @pytest.mark.parametrize("torn", [False, True], ids=["whole", "torn"])
    def test_fails_once(self, tmp_path: Path, code: int, kind: int, torn: bool) -> None:
        if torn and kind == SYNC:
            pytest.skip("only writes can be torn")
        seed = seed_of_this_run()
        failed = 0
        with model(tmp_path, seed) as disk:
            for _ in range(6):
                assert disk.commit(disk.some_writes())[0] == 200
            # A commit is one write, or several when it begins another file of the log.
            for number, big in itertools.product(range(1, 13 if kind == WRITE else 3), (0, BIG_BYTES // 3)):
                where = f"seed {seed}, call {number}, {big} bytes"
                disk.faults.arm(number, 1, code, kind, torn * disk.choice.random())
                answer = disk.commit(disk.some_writes(), big)
                if disk.faults.failures == 0:
                    assert answer[0] == 200, where
                    continue
                if answer[0] == 200:
                    # It was a call that makes the log's next file in advance, or applies the log: tried again later.
                    disk.assert_holds(where)
                    continue
                failed += 1
                disk.assert_refused(answer, ERRORS[code], where)
                disk.assert_holds(where)
                if disk.choice.random() < 0.3:
                    # Failed commits stay failed, also for a server that starts after a crash and finds their pages in
                    # the log.
                    disk.server.kill()
                    assert_sound(disk.faults.data)
                    disk.restart()
                    disk.assert_holds(where)
                assert disk.commit(disk.some_writes())[0] == 200, where
                disk.assert_holds(where)
            assert disk.server.terminate()[0] == 0
            assert_sound(disk.faults.data)
        assert failed >= 1, f"seed {seed}"

    @pytest.mark.parametrize("code", ERRORS)
    def test_fails_until_it_is_mended(self, tmp_path: Path, code: int) -> None:
        seed = seed_of_this_run()
        with model(tmp_path, seed) as disk:
            for _ in range(6):
                assert disk.commit(disk.some_writes())[0] == 200
            # A commit is a write and a sync; the calls behind them make files of the log, of some hundred calls each.
            numbers = [1, 2, 3, *(disk.choice.randrange(4, 400) for _ in range(6 * EFFORT))]
            for number in numbers:
                where = f"seed {seed}, from call {number} on"
                disk.faults.arm(number, ALWAYS, code)
                refused = []
                for big in (BIG_BYTES // 3, 0, BIG_BYTES // 3):
                    writes = disk.some_writes()
                    answer = disk.commit(writes, big)
                    if answer[0] == 200:
                        # This commit needed fewer calls.
                        assert not refused, where
                        continue
                    refused.append(writes)
                    disk.assert_refused(answer, ERRORS[code], where)
                    disk.assert_holds(where)
                if disk.choice.random() < 0.3:
                    # The record of the last commit could not be made void, so it may be stored; but only as a whole.
                    disk.server.kill()
                    disk.faults.lift()
                    assert_sound(disk.faults.data)
                    disk.restart()
                    possible = [dict(disk.documents) for _ in range(len(refused) + 1)]
                    for documents, writes in zip(possible[1:], refused, strict=True):
                        disk.apply(documents, writes)
                    found = disk.contents()
                    assert found in possible, where
                    disk.documents = found
                disk.faults.lift()
                assert disk.commit(disk.some_writes())[0] == 200, where
                disk.assert_holds(where)
            assert disk.server.terminate()[0] == 0
            assert_sound(disk.faults.data)


class TestTheJudge:
    def test_a_disk_that_lies_is_noticed(self, tmp_path: Path) -> None:
        """A loss of acknowledged data is detected; otherwise the tests above would prove nothing."""
        noticed = 0
        with model(tmp_path, 1) as disk:
            for _ in range(4):
                assert disk.commit(disk.some_writes())[0] == 200
                disk.faults.arm(1, 1, 0, WRITE)
                disk.commit(disk.some_writes())
                disk.faults.lift()
                disk.server.kill()
                result = check(disk.faults.data)
                disk.restart()
                found = disk.contents() if result.code == 0 else None
                noticed += found != disk.documents
                disk.documents = found or {}
        assert noticed == 4


class TestCheckpoints:
    """Applying the log to the file, and SQLite's checkpoints, fail during commits and reads."""

    @pytest.mark.parametrize("code", ERRORS)
    def test_fails_at_some_calls(self, tmp_path: Path, code: int) -> None:
        seed = seed_of_this_run()
        with model(tmp_path, seed) as disk:
            assert disk.commit(disk.some_writes())[0] == 200
            hit = 0
            for attempt in range(4 if EFFORT == 1 else 60):
                # Once, or until the fault ends.
                count = disk.choice.choice((1, ALWAYS))
                # Commits write to the log only, and it is applied in the quiet moment after them.
                first = 1 + int(disk.choice.random() ** 2 * 300)
                where = f"seed {seed}, attempt {attempt}, call {first}, {'once' if count == 1 else 'on'}"
                disk.faults.arm(first, count, code, torn=disk.choice.choice((0, disk.choice.random())), without_log=True)
                number = next(disk.numbers)
                for big in range(BIG_COUNT):
                    # On a busy machine the quiet moment may come before the last one, which then finds a file that fails.
                    assert disk.commit({f"big{big}": number}, BIG_BYTES)[0] in (200, 503), where
                deadline = time.monotonic() + 10
                while disk.faults.failures == 0 and time.monotonic() < deadline:
                    time.sleep(0.01)
                hit += disk.faults.failures > 0
                disk.assert_holds(where)
                if attempt % 2 == 0:
                    disk.server.kill()
                    disk.faults.lift()
                    assert_sound(disk.faults.data)
                    disk.restart()
                disk.faults.lift()
                assert disk.commit(disk.some_writes())[0] == 200, where
                disk.assert_holds(where)
            assert disk.server.terminate()[0] == 0
            assert_sound(disk.faults.data)
            assert hit >= 2, f"seed {seed}: the application was never met"

    def test_fails_when_the_server_ends(self, tmp_path: Path) -> None:
        with model(tmp_path, 1) as disk:
            for code in ERRORS:
                for first in (1, 2, 5, 9):
                    assert disk.commit(disk.some_writes())[0] == 200
                    disk.faults.arm(first, ALWAYS, code)
                    assert disk.server.terminate()[0] == 0
                    disk.faults.lift()
                    assert_sound(disk.faults.data)
                    disk.restart()
                    disk.assert_holds((code, first))


class TestStarts:
    """Creating a folder or a database fails at each call."""

    @pytest.mark.parametrize("code", ERRORS)
    @pytest.mark.parametrize("is_crash", [False, True], ids=["mended", "crash"])
    def test_fails_once(self, tmp_path: Path, code: int, is_crash: bool) -> None:
        refused = 0
        # A start is expensive, so the short run tests every fifth call, different ones each time.
        step = 5 if EFFORT == 1 else 1
        for number in itertools.count(1 + seed_of_this_run() % step, step):
            folder = tmp_path / str(number)
            folder.mkdir()
            faults = Faults(folder, folder / "hearth-data")
            faults.arm(number, 1, code, WRITE | SYNC | TRUNCATE | OPEN)
            try:
                disk = Model(folder, faults, 1)
            except AssertionError as error:
                assert faults.failures == 1
                assert ERRORS[code] in str(error), number
                assert faults.data.name in str(error)
                disk = Model(folder, faults, 1)
            try:
                answer = disk.commit({"d": 1})
                if answer[0] != 200:
                    refused += 1
                    # While SQLite creates a file it drops the system's message at some calls; the file is named.
                    words = "cannot open (default).sqlite"
                    disk.assert_refused(answer, words if words in str(answer) else ERRORS[code], number)
                    if is_crash:
                        disk.server.kill()
                        assert_sound(faults.data)
                        disk.restart()
                    assert disk.commit({"d": 2})[0] == 200, number
                disk.assert_holds(number)
                assert disk.server.terminate()[0] == 0
                assert_sound(faults.data)
            finally:
                disk.end()
            shutil.rmtree(folder)
            if faults.failures == 0:
                break
        assert refused >= (2 if step > 1 else 10)


class TestSlowSyncs:
    def test_reads_do_not_wait_and_commits_share(self, tmp_path: Path) -> None:
        with model(tmp_path, 1) as disk:
            assert disk.commit(disk.some_writes())[0] == 200
            disk.faults.slow(0.3)
            before = disk.faults.calls_of(SYNC)
            commits = 16
            answers: list[int] = []

            def write(number: int) -> None:
                body = {"fields": {"n": {"integerValue": str(number)}}}
                answers.append(disk.server.send("PATCH", f"{DATABASE}/documents/slow/d{number}", body)[0])

            threads = [threading.Thread(target=write, args=(number,)) for number in range(commits)]
            started = time.monotonic()
            for thread in threads:
                thread.start()
            reads = []
            while any(thread.is_alive() for thread in threads):
                read = time.monotonic()
                disk.assert_holds("while syncs are slow")
                reads.append(time.monotonic() - read)
            seconds = time.monotonic() - started
            assert answers == [200] * commits
            # Commits that wait for the disk are written together.
            assert disk.faults.calls_of(SYNC) - before < commits / 2
            assert seconds > 0.3
            # Reads do not wait for it.
            assert min(reads) < 0.3
            if os.environ.get("HEARTH_TEST_STRICT"):
                assert seconds < 0.3 * commits / 2
                assert sorted(reads)[len(reads) // 2] < 0.1
            disk.faults.slow(0)
            assert disk.server.terminate()[0] == 0
            assert_sound(disk.faults.data)


class Disk:
    """Files in their state on the disk and in the system, from the events of a journal.

    Names are durable at once; LogCrashTests loses names, too.
    """

    def __init__(self, base: Path) -> None:
        files = [path for path in base.rglob("*") if path.is_file()]
        self.durable = {str(path.relative_to(base)): bytearray(path.read_bytes()) for path in files}
        self.pending: dict[str, list[Event]] = {}

    def happen(self, event: Event) -> None:
        if event.kind == SYNC:
            # Folders are synced as well.
            for change in self.pending.pop(event.name, []):
                self.apply(self.durable.setdefault(event.name, bytearray()), change)
        elif event.kind == RENAME:
            for files in (self.durable, self.pending):
                if event.name in files:
                    files[event.data.decode()] = files.pop(event.name)  # type: ignore[index]
        elif event.kind in (WRITE, TRUNCATE):
            self.pending.setdefault(event.name, []).append(event)

    @staticmethod
    def apply(image: bytearray, event: Event, start: int = 0, end: int | None = None) -> None:
        if event.kind == TRUNCATE:
            del image[event.offset :]
            image.extend(bytes(event.offset - len(image)))
            return
        data = event.data[start:end]
        offset = event.offset + start
        if len(image) < offset:
            image.extend(bytes(offset - len(image)))
        image[offset : offset + len(data)] = data

    def without_power(self, choice: random.Random, folder: Path) -> None:
        """Writes one of the possible states of the disk: any selection of the sectors that were not synced."""
        chance = choice.choice((0.0, 0.5, 0.9, 1.0))
        for name in self.durable.keys() | self.pending.keys():
            image = bytearray(self.durable.get(name, b""))
            for event in self.pending.get(name, []):
                if event.kind == TRUNCATE:
                    if choice.random() < chance:
                        self.apply(image, event)
                    continue
                start = 0
                while start < len(event.data):
                    end = min(len(event.data), start + 512 - (event.offset + start) % 512)
                    if choice.random() < chance:
                        self.apply(image, event, start, end)
                    start = end
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(image)


class TestPower:
    """The power fails: any part of unsynced data may be missing, also in the middle."""

    WORKERS = 4

    def load(self, disk: Model, seconds: float) -> None:
        is_over = threading.Event()
        faults: list[BaseException] = []

        def work(worker: int) -> None:
            choice = random.Random(worker)
            try:
                for number in itertools.count(1):
                    if is_over.is_set():
                        return
                    big = BIG_BYTES // 3 if choice.random() < 0.1 else choice.randrange(500)
                    writes: dict[str, int | None] = {f"w{worker}-{part}": number for part in range(3)}
                    assert disk.commit(writes, big)[0] == 200
                    disk.faults.mark(worker * 1_000_000 + number)
                    if choice.random() < 0.03:
                        # A quiet moment, for a checkpoint.
                        time.sleep(0.2)
            except BaseException as error:  # noqa: BLE001 - told to the test's thread
                faults.append(error)

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(self.WORKERS)]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        # A slow machine needs longer until the file is written.
        end = time.monotonic() + PATIENCE
        while not faults and time.monotonic() < end and len(self.synced_files(disk)) < 2:
            time.sleep(1)
        is_over.set()
        for thread in threads:
            thread.join()
        assert not faults

    @staticmethod
    def synced_files(disk: Model) -> set[str]:
        """SQLite's file and its log, when they were synced."""
        assert disk.faults.journal is not None
        history = events(disk.faults.journal, with_data=False)
        return {event.name for event in history if event.kind == SYNC and event.name.endswith((".sqlite", "-wal"))}

    def test_any_moment(self, tmp_path: Path) -> None:
        seed = seed_of_this_run()
        choice = random.Random(seed)
        with model(tmp_path, seed, journal=True) as disk:
            assert disk.commit({"first": 1})[0] == 200
            assert disk.server.terminate()[0] == 0
            base = tmp_path / "base"
            shutil.copytree(disk.faults.data, base)
            assert disk.faults.journal is not None
            disk.faults.journal.write_bytes(b"")
            disk.restart()
            self.load(disk, 3 if EFFORT == 1 else 15)
            assert disk.server.terminate()[0] == 0
            history = list(events(disk.faults.journal))
            assert len(self.synced_files(disk)) == 2, "no checkpoint"
        moments = 12 if EFFORT == 1 else 300
        self.judge(tmp_path, base, history, choice, moments, seed)

    def judge(
        self, tmp_path: Path, base: Path, history: list[Event], choice: random.Random, moments: int, seed: int
    ) -> None:
        cuts = sorted(choice.sample(range(len(history)), min(moments, len(history))))
        state = Disk(base)
        acknowledged = dict.fromkeys(range(self.WORKERS), 0)
        position = 0
        for cut in cuts:
            for event in history[position:cut]:
                if event.kind == MARK:
                    worker, number = divmod(event.offset, 1_000_000)
                    acknowledged[worker] = number
                state.happen(event)
            position = cut
            where = f"seed {seed}, moment {cut} of {len(history)}"
            folder = tmp_path / "after"
            state.without_power(choice, folder / "hearth-data")
            result = check(folder / "hearth-data")
            assert result.code == 0, (where, result.text)
            server = Program(folder)
            try:
                status, answer = server.send("GET", f"{DATABASE}/documents/c?pageSize=100&mask.fieldPaths=n")
                assert status == 200, where
                rows = json.loads(answer)["documents"]
                found = {row["name"].rsplit("/")[-1]: int(row["fields"]["n"]["integerValue"]) for row in rows}
            finally:
                server.kill()
            assert found["first"] == 1, where
            for worker, number in acknowledged.items():
                parts = {found.get(f"w{worker}-{part}", 0) for part in range(3)}
                assert len(parts) == 1, (where, worker, parts)
                # The next one may have been durable before its answer arrived.
                assert parts <= {number, number + 1}, (where, worker, parts, number)
            shutil.rmtree(folder)

    def test_the_judge_sees_lost_syncs(self, tmp_path: Path) -> None:
        """A disk that loses synced data is detected."""
        with model(tmp_path, 1, journal=True) as disk:
            assert disk.commit({"first": 1})[0] == 200
            assert disk.server.terminate()[0] == 0
            base = tmp_path / "base"
            shutil.copytree(disk.faults.data, base)
            assert disk.faults.journal is not None
            disk.faults.journal.write_bytes(b"")
            disk.restart()
            self.load(disk, 1)
            disk.server.kill()
            history = [event for event in events(disk.faults.journal) if event.kind != SYNC]
        with pytest.raises((AssertionError, KeyError)):
            self.judge(tmp_path, base, history, random.Random(1), 8, 1)
