"""Documents that expire by a time-to-live policy, set by Google's own admin client and by `firestore.indexes.json`.

HEARTH_TEST_EXPIRING=100000 pytest endtoend/test_expiry.py -s -k beside_writers   # documents, and figures: two minutes
HEARTH_TEST_RACES=10000 pytest endtoend/test_expiry.py -s -k moved_on             # five minutes
"""

from __future__ import annotations

import datetime
import json
import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import grpc
import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_admin_v1 import FirestoreAdminClient
from google.cloud.firestore_admin_v1.services.firestore_admin.transports import FirestoreAdminGrpcTransport
from google.cloud.firestore_admin_v1.types import Field
from google.protobuf import duration_pb2, field_mask_pb2

from support.patience import PATIENCE
from support.program import EFFORT, Program, assert_sound, program

PROJECT = "demo-expiry"
EXPIRING = int(os.environ.get("HEARTH_TEST_EXPIRING", str(3000 * EFFORT)))
RACES = int(os.environ.get("HEARTH_TEST_RACES", str(200 * EFFORT)))
GROUP = f"projects/{PROJECT}/databases/(default)/collectionGroups/c"


class Server:
    """A program, and Google's clients of it."""

    def __init__(self, started: Program) -> None:
        self.program = started
        self.channel = grpc.insecure_channel(started.address)
        self.admin = FirestoreAdminClient(transport=FirestoreAdminGrpcTransport(channel=self.channel))
        self.db = self.client()

    def client(self) -> firestore.Client:
        with mock.patch.dict(os.environ, {"FIRESTORE_EMULATOR_HOST": self.program.address}):
            return firestore.Client(project=PROJECT, credentials=AnonymousCredentials())

    def set_policy(self, path: str, config: Field.TtlConfig | None) -> Field:
        request = {
            "field": Field(name=f"{GROUP}/fields/{path}", ttl_config=config),
            "update_mask": field_mask_pb2.FieldMask(paths=["ttl_config"]),
        }
        operation = self.admin.update_field(request=request)
        field: Field = operation.result(timeout=PATIENCE)
        return field

    def metric(self, name: str) -> float:
        lines = self.program.send("GET", "/metrics")[1].decode().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith(name + " ")))

    def count(self, collection: str = "c") -> int:
        return int(self.db.collection(collection).count().get()[0][0].value)

    def wait_for(self, count: int, seconds: float = PATIENCE) -> None:
        end = time.monotonic() + seconds
        while self.count() != count:
            assert time.monotonic() < end, f"{self.count()} documents are left, not {count}"
            time.sleep(0.05)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with program(tmp_path, "--project", PROJECT) as started:
        yield Server(started)


def now(seconds: float = 0) -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)


def fill(db: firestore.Client, count: int, until: datetime.datetime, prefix: str = "") -> None:
    for begin in range(0, count, 500):
        batch = db.batch()
        for number in range(begin, min(count, begin + 500)):
            batch.set(db.document(f"c/{prefix}{number}"), {"until": until, "n": number})
        batch.commit()


def test_a_policy_its_offset_and_its_end(server: Server) -> None:
    db = server.db
    db.document("c/before").set({"until": now(-5)})
    db.document("c/before/c/deep").set({"until": now(-5)})
    db.document("c/before/d/other").set({"until": now(-5)})
    made = server.set_policy("until", Field.TtlConfig())
    assert made.ttl_config.state == Field.TtlConfig.State.ACTIVE
    server.wait_for(0)
    assert db.document("c/before/d/other").get().exists
    # Not before its time.
    until = now(1)
    db.document("c/next").set({"until": until})
    while db.document("c/next").get().exists:
        assert now() < until + datetime.timedelta(seconds=PATIENCE)
        time.sleep(0.02)
    assert now() >= until
    field = server.set_policy("until", Field.TtlConfig(expiration_offset=duration_pb2.Duration(seconds=3600)))
    assert field.ttl_config.expiration_offset == datetime.timedelta(hours=1)
    db.document("c/offset").set({"until": now(-5)})
    with pytest.raises(exceptions.FailedPrecondition):
        server.set_policy("later", Field.TtlConfig())
    listed = server.admin.list_fields(request={"parent": GROUP, "filter": "ttlConfig:*"})
    assert [found.name for found in listed] == [f"{GROUP}/fields/until"]
    assert not server.set_policy("until", None).ttl_config
    time.sleep(1.5)
    assert db.document("c/offset").get().exists
    assert server.metric("hearth_ttl_deletes_total") == 3


class Writers:
    """Commit one small document after the other, and note how long each takes."""

    def __init__(self, server: Server, count: int = 4) -> None:
        self.server = server
        self.seconds: list[float] = []
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self.write, args=(number,)) for number in range(count)]

    def write(self, name: int) -> None:
        number = 0
        while not self.is_over.is_set():
            began = time.monotonic()
            self.server.db.document(f"other/{name}").set({"n": number})
            self.seconds.append(time.monotonic() - began)
            number += 1
            time.sleep(0.005)

    def __enter__(self) -> Writers:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def __str__(self) -> str:
        ordered = [1000 * one for one in sorted(self.seconds)]
        p50, p99 = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
        return f"p50 {p50:.1f} ms, p99 {p99:.1f}, longest {ordered[-1]:.1f} of {len(ordered)}"


def test_many_expire_beside_writers(server: Server, tmp_path: Path) -> None:
    """A restart by SIGKILL in the middle, and policies of a file."""
    fill(server.db, EXPIRING, now(-1))
    server.program.settle()
    with Writers(server) as before:
        while len(before.seconds) < min(2000, EXPIRING // 20):
            time.sleep(0.01)
    server.program.kill()
    (tmp_path / "firebase.json").write_text(json.dumps({"firestore": {"indexes": "firestore.indexes.json"}}))
    override = {"collectionGroup": "c", "fieldPath": "until", "ttl": True, "indexes": []}
    (tmp_path / "firestore.indexes.json").write_text(json.dumps({"fieldOverrides": [override]}))
    with program(tmp_path, "--project", PROJECT) as started:
        # Nobody uses the database: it is opened for what has expired.
        end = time.monotonic() + PATIENCE
        metrics = b"hearth_ttl_deletes_total 0\n"
        while b"hearth_ttl_deletes_total 0\n" in metrics:
            assert time.monotonic() < end
            metrics = started.send("GET", "/metrics")[1]
            time.sleep(0.01)
        started.kill()
    with program(tmp_path, "--project", PROJECT) as started:
        began = time.monotonic()
        again = Server(started)
        with Writers(again) as meanwhile:
            again.wait_for(0, seconds=60 + EXPIRING / 200)
        seconds = time.monotonic() - began
        print(
            f"{EXPIRING} documents have expired within {seconds:.1f} s. Commits before: {before}. Meanwhile: {meanwhile}"
        )
        started.terminate()
    assert_sound(tmp_path / "hearth-data")


def test_a_document_whose_time_is_moved_on_survives(server: Server) -> None:
    """Its owner moves the time on at about the moment of its deletion: one of both is made, and the owner learns which."""
    server.set_policy("until", Field.TtlConfig())
    at_once = 100 if RACES < 1000 else 500
    rounds = RACES // at_once
    saved = lost = 0
    later = now(3600)
    for number in range(rounds):
        until = now(1)
        fill(server.db, at_once, until, f"{number}-")
        moments = sorted(until.timestamp() + random.uniform(-0.2, 0.7) for _ in range(at_once))

        def move(document: int, number: int = number, moments: list[float] = moments) -> bool:
            time.sleep(max(0, moments[document] - time.time()))
            try:
                server.db.document(f"c/{number}-{document}").update({"until": later})
            except exceptions.NotFound:
                return False
            return True

        with ThreadPoolExecutor(16) as pool:
            results = list(pool.map(move, range(at_once)))
        time.sleep(1)
        for document, survived in enumerate(results):
            found = server.db.document(f"c/{number}-{document}").get()
            assert found.exists == survived
            assert not survived or found.get("until") == later
        saved += sum(results)
        lost += len(results) - sum(results)
    print(f"{saved} saved, {lost} expired")


def test_off(tmp_path: Path) -> None:
    with program(tmp_path, "--project", PROJECT, "--ttl", "off") as started:
        server = Server(started)
        server.set_policy("until", Field.TtlConfig())
        server.db.document("c/x").set({"until": now(-60)})
        time.sleep(1.5)
        assert server.db.document("c/x").get().exists
        assert b"hearth_ttl" not in started.send("GET", "/metrics")[1]
