"""Requests of one client do not prevent others from writing: failed reads, failed commits, large commits, open
transactions.
"""

from __future__ import annotations

import math
import os
import threading
import time

from endtoend.people import Person, Site, is_denied, query, rule

# The documented bound (docs/reference/abuse.md), of a release binary on a machine without other load.
WAIT_SECONDS_MAX = 0.25 if os.environ.get("HEARTH_TEST_STRICT") else math.inf
WRITE = {"readWrite": {}}


def slowest_write(site: Site, attack: threading.Thread) -> float:
    """The longest wait of a bystander for a small commit during an attack, of which some are made meanwhile."""
    site.set("own/x", n=0)
    attack.start()
    slowest, number = 0.0, 0
    while attack.is_alive():
        started = time.monotonic()
        number += 1
        site.set("own/x", n=number)
        slowest = max(slowest, time.monotonic() - started)
        assert number < 100_000
    attack.join()
    # The last one may have ended after the attack: a bystander that is held up has made no other.
    assert number >= 3
    return slowest


def test_a_refused_read_leaves_no_lock(site: Site, over_rest: bool) -> None:
    site.rules(rule("open/{x}", "read: if true"))
    site.set("c/a", n=1)
    nobody = site.person(None, over_rest)
    everything = {"from": [{"allDescendants": True}]}
    for _ in range(3):
        assert is_denied(nobody.run(everything, newTransaction=WRITE))
        assert is_denied(nobody.run(query("c"), newTransaction=WRITE))
        assert is_denied(nobody.batch_get("c/a", newTransaction=WRITE))
        assert is_denied(nobody.count(query("c"), newTransaction=WRITE))
    # Also in a transaction that is open.
    begun = nobody.ask("BeginTransaction", {"database": site.database, "options": WRITE})
    transaction = begun.body["transaction"]
    assert is_denied(nobody.get("c/a", transaction=transaction))
    assert is_denied(nobody.run(query("c"), transaction=transaction))
    # A lock would have failed it, after two seconds.
    site.set("c/a", n=2)
    # Allowed requests still take their locks.
    assert nobody.run(query("open"), transaction=transaction).good


def test_refused_commits_of_many_writes_hold_nobody_up(site: Site) -> None:
    site.rules(rule("own/{x}", "read, write: if false"))
    nobody = site.person(None)
    deletes = [site.deleted(f"shut/{number}") for number in range(20_000)]

    def attack() -> None:
        for _ in range(3):
            assert is_denied(nobody.commit(*deletes))

    assert slowest_write(site, threading.Thread(target=attack)) < WAIT_SECONDS_MAX


def test_large_commits_hold_nobody_up(site: Site) -> None:
    site.rules(rule("heavy/{x}", "read, write: if true"))
    heavy = site.person(None)
    numbers = list(range(8000))

    def attack(person: Person, path: str) -> None:
        for round in range(3):
            answer = person.commit(site.written(path, a=[number + round for number in numbers]))
            assert answer.good or answer.code == "RESOURCE_EXHAUSTED", answer

    def many() -> None:
        threads = [threading.Thread(target=attack, args=(heavy, f"heavy/{number}")) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert slowest_write(site, threading.Thread(target=many)) < WAIT_SECONDS_MAX


def test_an_updated_document_is_answered_as_it_was_written(site: Site, over_rest: bool) -> None:
    owner = Person(site, "owner", over_rest)
    made = owner.create("c/new", n=1, s="x")
    assert made.good and made.body["fields"] == {"n": {"integerValue": "1"}, "s": {"stringValue": "x"}}
    changed = owner.update("c/new", n=2)
    assert changed.good and changed.body["fields"] == {"n": {"integerValue": "2"}}
    assert changed.body["createTime"] == made.body["createTime"]
    same = owner.update("c/new", n=2)
    assert same.body["updateTime"] == changed.body["updateTime"]
    read = owner.get("c/new")
    assert read.body == same.body
