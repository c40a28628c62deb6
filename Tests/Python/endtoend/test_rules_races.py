"""Rules that read documents during changes of these documents: a forbidden state never occurs.

    HEARTH_TEST_EFFORT=10 pytest endtoend/test_rules_races.py         # 10,000 attempts
    HEARTH_TEST_SEED=7 pytest endtoend/test_rules_races.py            # the same choices again
"""

from __future__ import annotations

import os
import queue
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from differential.request import nanoseconds
from endtoend.people import Site, query, rule
from endtoend.user_streams import MEMBERS, PERMISSION_DENIED, listener, loaded
from support.patience import PATIENCE
from support.program import EFFORT

SEED = int(os.environ.get("HEARTH_TEST_SEED", random.randrange(10**6)))


def test_nothing_comes_between_judgement_and_commit(site: Site) -> None:
    """Of two documents that exclude each other by rules, at most one exists; seeded, a thousand attempts."""
    a, b = ("/databases/$(db)/documents/{}/$(x)".format(name) for name in "ab")
    site.rules(
        rule("a/{x}", f"create: if !exists({b}) && !existsAfter({b})", "delete"),
        rule("b/{x}", f"create: if !existsAfter({a})", "delete"),
    )
    attempts = 500 * EFFORT
    dice = random.Random(SEED)
    rounds = [(number, dice.random() < 0.5, dice.random()) for number in range(attempts)]
    barrier = threading.Barrier(2)
    outcomes: list[dict[int, str]] = [{}, {}]

    def race(side: int) -> None:
        own = Site(site.address, site.project)
        person = own.person("alice", rest=False)
        try:
            for number, goes_first, pause in rounds:
                barrier.wait(PATIENCE)
                if goes_first == bool(side):
                    time.sleep(pause * 0.0005)
                outcomes[side][number] = person.commit(own.written(f"{'ab'[side]}/x{number}", n=number)).code
        finally:
            own.close()

    with ThreadPoolExecutor(2) as pool:
        for one in [pool.submit(race, side) for side in (0, 1)]:
            one.result()
    there = {}
    for side in "ab":
        found = [one["document"]["name"] for one in site.owner.run(query(side)).body if "document" in one]
        there[side] = {name.rsplit("x", 1)[1] for name in found}
    assert not there["a"] & there["b"], f"seed {SEED}"
    # The first one succeeded, and each did sometimes.
    assert len(there["a"]) + len(there["b"]) == attempts and there["a"] and there["b"], f"seed {SEED}"
    for side, name in enumerate("ab"):
        for number, code in outcomes[side].items():
            assert code == ("OK" if str(number) in there[name] else "PERMISSION_DENIED"), f"seed {SEED}: {code}"


def test_a_gate_that_opens_and_shuts(site: Site) -> None:
    """A rule reads a gate, which changes all the time: documents were created while it was open.

    The times of the commits determine their order, and so the state of the gate.
    """
    site.rules(rule("c/{x}", "create: if get(/databases/$(db)/documents/gates/g).data.open"))
    site.set("gates/g", open=False)
    attempts = 500 * EFFORT
    done = threading.Event()
    moves: list[tuple[str, bool]] = []
    made: queue.Queue[str] = queue.Queue()
    denied: queue.Queue[int] = queue.Queue()

    def move() -> None:
        own = Site(site.address, site.project)
        dice = random.Random(SEED)
        is_open = False
        while not done.is_set():
            is_open = not is_open
            answer = own.owner.commit(own.written("gates/g", open=is_open))
            assert answer.good, answer
            moves.append((answer.body["commitTime"], is_open))
            time.sleep(dice.random() * 0.002)
        own.close()

    def make(part: int) -> None:
        own = Site(site.address, site.project)
        person = own.person("alice", rest=part == 0)
        dice = random.Random(SEED * 31 + part)
        for number in range(attempts // 3):
            writes = [own.written(f"c/{part}x{number}", n=1)]
            if dice.random() < 0.3:
                writes.append(own.written(f"c/{part}y{number}", n=1))
            answer = person.commit(*writes)
            if answer.good:
                made.put(answer.body["commitTime"])
            else:
                assert answer.code == "PERMISSION_DENIED", answer
                denied.put(number)
        own.close()

    mover = threading.Thread(target=move)
    mover.start()
    try:
        with ThreadPoolExecutor(3) as pool:
            for one in [pool.submit(make, part) for part in range(3)]:
                one.result()
    finally:
        done.set()
        mover.join()
    assert made.qsize() > 20 and denied.qsize() > 20
    events = sorted([(_nanoseconds(at), "move", is_open) for at, is_open in moves] + [
        (_nanoseconds(at), "make", True) for at in made.queue
    ])  # fmt: skip
    is_open = False
    for at, kind, state in events:
        if kind == "move":
            is_open = state
        else:
            assert is_open, f"seed {SEED}: made at {at} while the gate was shut"


@pytest.mark.emulator_differs("it answers changes with the whole result")
def test_a_race_of_revocations(site: Site, channel: grpc.Channel) -> None:
    """Documents are written all the while, from several threads; no data later than the right is delivered."""
    site.rules(rule("c/{x}", f"read: if {MEMBERS}"))
    done = threading.Event()

    def write(number: int) -> None:
        count = 0
        while not done.is_set():
            count += 1
            assert site_of_thread[number].owner.commit(site.written(f"c/{number}", n=count)).good

    site_of_thread = [Site(site.address, site.project) for _ in range(2)]
    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(15 * EFFORT):
            site.set("members/alice", n=turn)
            kind = ("grpc", "webchannel", "polls")[turn % 3]
            alice = listener(site, kind, channel, "alice")
            alice.add_query(2, "c")
            alice.add_documents(4, "c/0", "c/1")
            loaded(alice, 2, 4)
            revoked = site.owner.commit(site.deleted("members/alice")).body["commitTime"]
            newest, removed = "", 0
            while removed < 2:
                message = alice.take()
                change = message.target_change
                if message.HasField("document_change"):
                    newest = max(newest, message.document_change.document.update_time.ToJsonString())
                elif message.HasField("target_change") and change.target_change_type == 2:
                    assert change.cause.code == PERMISSION_DENIED
                    removed += 1
            assert _nanoseconds(newest) < _nanoseconds(revoked), (newest, revoked)
            alice.cancel()
    finally:
        done.set()
        for thread in threads:
            thread.join()
        for one in site_of_thread:
            one.close()


def _nanoseconds(text: str) -> int:
    return nanoseconds(text) or 0 if text else 0
