"""Sequences on Listen and Write streams; at each `yield` the received messages are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from support.model import Query, fill_target
from support.streams import ListenRequest

from .stream_side import Side

ASC, DESC = "asc", "desc"
Sequence = Callable[[Side], Iterator[str]]
C = Query("c")


def fresh_targets(side: Side) -> Iterator[str]:
    side.add(2, C)
    yield "an empty result"
    side.commit(a=3, b=1, d=2)
    yield "three come in"
    side.add(4, Query("c", order=(("n", DESC),)))
    yield "in the order of the query"
    side.add(6, Query("c", where=("n", ">", 1), select=("n",)))
    yield "a projection"
    side.add(8, Query("c", limit=0))
    yield "a limit of nothing"


def changes_of_one_target(side: Side) -> Iterator[str]:
    side.commit(a=1, b=2, d=3)
    side.add(2, Query("c", where=("n", ">", 1)))
    yield "loaded"
    side.commit(a=5)
    yield "comes in"
    side.commit(a=6)
    yield "is modified"
    side.commit(b=0)
    yield "leaves the result"
    side.commit(deletes=["c/d"])
    yield "is deleted"
    side.commit(a=9, e=4, f=0, deletes=["c/b"])
    yield "all at once"


def changes_that_are_none(side: Side) -> Iterator[str]:
    side.commit(a=5)
    side.add(2, Query("c", where=("n", ">", 1)))
    yield "loaded"
    side.commit(a=5)
    yield "the same again"
    side.commit(deletes=["c/none"])
    yield "a delete of what is not there"
    side.commit(z=0)
    yield "outside of the filter"
    side.commit(fields={"d/a": {"n": 9}})
    yield "another collection"
    side.commit(fields={"c/a/c/b": {"n": 9}})
    yield "a collection of the same id below"


def windows(side: Side) -> Iterator[str]:
    side.commit(a=1, b=2, d=3, e=4)
    side.add(2, Query("c", order=(("n", ASC),), limit=2))
    yield "loaded"
    side.commit(deletes=["c/a"])
    yield "a place is refilled"
    side.commit(x=0)
    yield "one is displaced"
    side.commit(y=100)
    yield "behind the window"
    side.commit(x=1)
    yield "modified inside"
    side.commit(b=50)
    yield "moves out"


def last_ones(side: Side) -> Iterator[str]:
    """How `limitToLast` arrives."""
    side.commit(a=1, b=2, d=3)
    side.add(2, Query("c", order=(("n", DESC),), limit=2))
    yield "loaded"
    side.commit(e=4)
    yield "one comes, one goes"


def documents(side: Side) -> Iterator[str]:
    side.commit(a=1)
    side.add(1, Query(documents=("c/a", "c/b")))
    yield "one is there, one not"
    side.commit(b=1)
    yield "the other comes"
    side.commit(a=2)
    yield "one is modified"
    side.commit(deletes=["c/a"])
    yield "one is deleted"
    side.commit(z=2)
    yield "one that is none of them"
    side.commit(b=1)
    yield "the same again"
    side.commit(a=7, b=7)
    yield "both at once"
    side.add(3, Query(documents=("c/none",)))
    yield "one that is not there"


def several_targets(side: Side) -> Iterator[str]:
    side.commit(a=1)
    side.add(2, C)
    yield "the first"
    side.add(4, Query("c", where=("n", ">", 5)))
    yield "the second"
    side.add(5, Query(documents=("c/a",)))
    yield "the third"
    side.commit(a=9)
    yield "one document for all"
    side.commit(a=1)
    yield "leaves one of them"
    side.remove(2)
    yield "one target is removed"
    side.commit(deletes=["c/a"])
    yield "deleted"


def groups(side: Side) -> Iterator[str]:
    side.commit(fields={"a/1/c/x": {"n": 1}})
    side.add(2, Query("c", group=True))
    yield "loaded"
    side.commit(fields={"c/y": {"n": 2}})
    yield "at the top"
    side.commit(fields={"a/1/d/x": {"n": 1}})
    yield "another id"
    side.add(4, Query("c", parent="a/1"))
    yield "below a document"
    side.commit(deletes=["a/1/c/x"])
    yield "deleted for both"


def resumed(side: Side, by_time: bool, expected: int | None) -> Iterator[str]:
    side.commit(a=1, b=2, d=3)
    side.add(2, C)
    yield "loaded"
    token, read_time = side.token, side.read_time
    side.reopen(2)
    side.commit(a=5, e=1, deletes=["c/b"])
    known: dict[str, Any] = {"read_time": read_time} if by_time else {"resume_token": token}
    side.add(2, C, **known, **({} if expected is None else {"expected_count": expected}))
    yield "resumed"
    side.commit(a=6)
    yield "goes on"


def resumed_by_token(side: Side) -> Iterator[str]:
    yield from resumed(side, False, None)


def resumed_by_time(side: Side) -> Iterator[str]:
    yield from resumed(side, True, None)


def resumed_with_a_count(side: Side) -> Iterator[str]:
    yield from resumed(side, False, 3)


def resumed_with_a_wrong_count(side: Side) -> Iterator[str]:
    yield from resumed(side, False, 7)


def resumed_without_changes(side: Side) -> Iterator[str]:
    side.commit(a=1)
    side.add(2, C)
    side.add(1, Query(documents=("c/a",)))
    yield "loaded"
    token = side.token
    side.reopen(2, 1)
    side.add(2, C, resume_token=token)
    yield "a query"
    side.add(1, Query(documents=("c/a",)), resume_token=token)
    yield "a document"


def resumed_window(side: Side) -> Iterator[str]:
    query = Query("c", order=(("n", ASC),), limit=2)
    side.commit(a=1, b=2, d=3)
    side.add(2, query)
    yield "loaded"
    token = side.token
    side.reopen(2)
    side.commit(x=0)
    side.add(2, query, resume_token=token)
    yield "resumed"


def a_token_that_is_none(side: Side) -> Iterator[str]:
    side.commit(a=1)
    side.add(2, C, resume_token=b"nonsense")
    yield "added"


def a_time_in_the_future(side: Side) -> Iterator[str]:
    side.commit(a=1)
    side.add(2, C, read_time=4_000_000_000_000_000)
    yield "added"


def removed(side: Side) -> Iterator[str]:
    side.commit(a=1)
    side.add(2, C)
    yield "added"
    side.remove(2)
    yield "removed"
    side.commit(a=2)
    yield "nothing more"
    side.remove(2)
    yield "removed again"
    side.add(2, C)
    yield "added again"
    side.remove(2)
    side.add(2, C)
    yield "both at once"


def once(side: Side) -> Iterator[str]:
    side.commit(a=1)
    side.add(2, C, once=True)
    yield "added"
    side.commit(a=2)
    yield "nothing more"


def assigned_ids(side: Side) -> Iterator[str]:
    side.add(0, C)
    yield "the first"
    side.add(0, Query("d"))
    yield "the second"


def a_target_twice(side: Side) -> Iterator[str]:
    side.add(2, C)
    yield "added"
    side.add(2, Query("d"))
    yield "again"


def a_bad_query(side: Side) -> Iterator[str]:
    side.add(2, C)
    yield "a good one"
    side.add(4, Query("c", limit=-1))
    yield "a negative limit"


def a_bad_name(side: Side) -> Iterator[str]:
    side.add(1, Query(documents=("c",)))
    yield "of a collection"


def a_negative_id(side: Side) -> Iterator[str]:
    side.add(-2, C)
    yield "added"


def neither(side: Side) -> Iterator[str]:
    side.listen.send(ListenRequest(database=side.database))
    yield "nothing to add or remove"


def without_database(side: Side) -> Iterator[str]:
    request = ListenRequest()
    request.add_target.target_id = 2
    fill_target(C, side.root, request.add_target)
    side.listen.send(request)
    yield "added"


def half_closed(side: Side) -> Iterator[str]:
    side.add(2, C)
    yield "added"
    side.listen.half_close()
    yield "ends"


def writing(side: Side) -> Iterator[str]:
    side.add(2, C)
    yield "listening"
    side.begin_write()
    yield "handshake"
    side.send_writes({"set": "c/a", "n": 1})
    yield "one write"
    side.send_writes({"set": "c/b", "n": 1}, {"set": "c/d", "n": 2}, {"delete": "c/a"})
    yield "several"
    side.send_writes({"set": "c/b", "increment": 4})
    yield "a transform"
    side.send_writes({"set": "c/b", "n": 5})
    yield "the same again"
    side.send_writes({"set": "c/b", "n": 5, "exists": False})
    yield "one that fails"
    side.begin_write()
    yield "another stream"
    side.send_writes({"set": "c/e", "n": 1}, {"delete": "c/none", "exists": True})
    yield "nothing of a batch that fails"


def an_empty_write(side: Side) -> Iterator[str]:
    side.begin_write()
    yield "handshake"
    side.send_writes()
    yield "without writes"


def a_write_without_token(side: Side) -> Iterator[str]:
    side.begin_write()
    yield "handshake"
    side.send_writes({"set": "c/a", "n": 1}, token=b"")
    yield "a write"


def a_resumed_write_stream(side: Side) -> Iterator[str]:
    side.begin_write(stream_id="1", stream_token=b"1")
    yield "handshake"


def writes_in_the_handshake(side: Side) -> Iterator[str]:
    side.begin_write(writes=[{"delete": f"{side.root}/c/a"}])
    yield "handshake"


def a_handshake_without_database(side: Side) -> Iterator[str]:
    side.begin_write(database="")
    yield "handshake"


SEQUENCES: tuple[Sequence, ...] = (
    fresh_targets,
    changes_of_one_target,
    changes_that_are_none,
    windows,
    last_ones,
    documents,
    several_targets,
    groups,
    resumed_by_token,
    resumed_by_time,
    resumed_with_a_count,
    resumed_with_a_wrong_count,
    resumed_without_changes,
    resumed_window,
    a_token_that_is_none,
    a_time_in_the_future,
    removed,
    once,
    assigned_ids,
    a_target_twice,
    a_bad_query,
    a_bad_name,
    a_negative_id,
    neither,
    without_database,
    half_closed,
    writing,
    an_empty_write,
    a_write_without_token,
    a_resumed_write_stream,
    writes_in_the_handshake,
    a_handshake_without_database,
)
