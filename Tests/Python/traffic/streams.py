"""Listen and Write over gRPC, on connections whose windows and bytes are in the hand of chance.

A lane has one collection after another. Each is created, changed by a Write stream and by REST, listened to by several
targets, and emptied; streams and connections are cut at any byte meanwhile, and resumed. Then the judge of
`support.snapshots` compares each snapshot with the result of the commits up to its time.
"""

from __future__ import annotations

import json
import time
from typing import Any

from google.protobuf import json_format

from support.model import Commit, Query, Write, encode
from support.snapshots import Judge
from support.streams import WriteRequest
from support.watching import Watcher
from support.wire import METHODS, SERVICE, message_class
from traffic import http2
from traffic.content import letters, size
from traffic.http2 import DATABASE, ROOT, Stream, framed
from traffic.served import Finding, Served

ListenResponse = message_class("ListenResponse")
WriteResponse = message_class("WriteResponse")

#: Of all large documents that a lane writes: the server keeps their old versions for an hour.
LARGE_BYTES_MAX = 40 << 20
LARGE_BYTES_PER_SECOND = 30 << 10
SMALL_BYTES_MAX = 2_000
#: Commits that are sent without an answer to the one before.
AHEAD_MAX = 5
#: Not forever: a commit waits for nothing here.
COMMIT_SECONDS = 120.0


class Life:
    """One collection, from its creation until it is empty again."""

    def __init__(self, collection: str, commits: int) -> None:
        #: Changed by the Write stream. A commit whose answer is lost shows itself by a version that a listener sees.
        self.shared = [f"{collection}/{name}" for name in ("large0", "large1", "large2", "small0", "small1")]
        #: Changed by REST, also deleted: the answer always comes.
        self.deleted = [f"{collection}/other{number}" for number in range(3)]
        self.queries = [
            Query(collection=collection),
            Query(collection=collection, order=(("__name__", "desc"),), limit=3),
            Query(collection=collection, where=("n", ">=", 5)),
            Query(documents=(self.shared[0], self.deleted[0])),
        ]
        self.commits_left = commits
        self.is_cleared = False
        self.has_news = False
        self.watcher: Watcher
        self.writes: dict[int, tuple[Write, ...]] = {}
        self.times: dict[int, int] = {}

    def committed(self, version: int, time: int) -> None:
        if version not in self.writes:
            raise Finding(f"version {version}, which nobody has written")
        if self.times.setdefault(version, time) != time:
            raise Finding(f"version {version} was committed at {self.times[version]} and at {time}")

    def judge(self) -> Judge:
        return Judge([Commit(at, self.writes[version]) for version, at in self.times.items()], self.queries)

    def is_settled(self) -> bool:
        """Whether the listener has the last result of each query."""
        if not self.has_news:
            return False
        self.has_news = False
        if not self.watcher.is_settled:
            return False
        judge = self.judge()
        targets = self.watcher.targets.values()
        return all(target.documents == judge.result_at(target.query, 1 << 62) for target in targets)


class _Requests:
    """What a watcher sends its requests to."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    def send(self, request: Any) -> None:
        self._lane.send_listen(request)


class _Writing:
    """A Write stream, and what it has not answered."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.token = b""
        self.unanswered: list[int] = []

    @property
    def may_write(self) -> bool:
        return bool(self.token) and len(self.unanswered) < AHEAD_MAX


class Lane(http2.Lane):
    #: With the other requests beside both.
    streams_max = 12

    def __init__(self, served: Served, seed: int, number: int) -> None:
        super().__init__(served, seed, number)
        self.counts |= {"snapshots": 0, "commits": 0, "lost": 0, "resumed": 0}
        self.life: Life | None = None
        self.lives = 0
        self.version = 0
        self.large_bytes = 0
        self.began = time.monotonic()
        #: Until the client ends or loses them.
        self.listening: Stream | None = None
        self.writing: _Writing | None = None
        self.writer = served.connection(COMMIT_SECONDS)

    def run(self, until: float) -> None:
        try:
            super().run(until)
        finally:
            self.writer.close()

    def _is_done(self) -> bool:
        return super()._is_done() and self.life is None

    # What is done

    def _act(self) -> None:
        self._advance()
        super()._act()

    def _is_drained(self) -> bool:
        if self.life and (self.life.commits_left <= 0 or time.monotonic() > self.until):
            self.life.commits_left = 0
            self._advance()
        else:
            # It is resumed on the next connection.
            self._end_streams()
        return super()._is_drained()

    def _is_chosen(self, share: float) -> bool:
        return self.hurries or self.chance.random() < share

    def _advance(self) -> None:
        life = self.life
        if life is None:
            return self._begin_life() if not self.hurries else None
        if self.listening is None and self._is_chosen(0.3):
            self._listen(life)
        if life.commits_left <= 0:
            return self._conclude(life)
        if self.writing is None and self._is_chosen(0.3):
            self._open_write(life)
        if self.writing and self.writing.may_write and self._is_chosen(0.3):
            life.commits_left -= 1
            self._write(life, self.writing)
        if self._is_chosen(0.03):
            life.commits_left -= 1
            self._change_by_rest(life)

    def _begin_life(self) -> None:
        self.lives += 1
        life = self.life = Life(f"life{self.number}x{self.lives}", self.chance.randrange(5, 120))
        life.watcher = Watcher(f"life {self.lives}", DATABASE, life.queries, self._open_listen)
        self._commit_by_rest(life, self._version(life, life.shared))

    def _conclude(self, life: Life) -> None:
        if self.writing and self.writing.unanswered:
            return
        if not life.is_cleared:
            life.is_cleared = life.has_news = True
            self._commit_by_rest(life, self._version(life, [], life.shared + life.deleted))
        if not life.is_settled():
            return
        if faults := life.judge().check(life.watcher.log):
            raise Finding(f"{len(faults)} wrong snapshots, the first: {faults[0][:2_000]}")
        self.counts["snapshots"] += len(life.watcher.log.boundaries)
        self.counts["whole"] += 1
        self.life = None
        self._end_streams()

    def _end_streams(self) -> None:
        if self.listening:
            self._end(self.listening)
            self.listening = None
        if self.writing and not self.writing.unanswered:
            self._end(self.writing.stream)
            self.writing = None

    # Versions

    def _version(self, life: Life, changed: list[str], deleted: list[str] | None = None) -> int:
        self.version += 1
        writes = [Write(name, self._fields(name, at)) for at, name in enumerate(changed)]
        life.writes[self.version] = (*writes, *(Write(name, None) for name in deleted or []))
        return self.version

    def _fields(self, name: str, at: int) -> dict[str, Any]:
        length = size(self.chance, 900 << 10)
        allowed = LARGE_BYTES_MAX + LARGE_BYTES_PER_SECOND * (time.monotonic() - self.began)
        if "/large" not in name or self.large_bytes + length > allowed:
            length %= SMALL_BYTES_MAX
        self.large_bytes += length
        # The number of the version differs within a commit, so that no two documents have the same content.
        return {"v": self.version, "n": self.chance.randrange(10), "s": letters(self.version * 8 + at, length)}

    def _some(self, names: list[str]) -> list[str]:
        return self.chance.sample(names, self.chance.choice([1, 1, 2, 3]))

    def _change_by_rest(self, life: Life) -> None:
        names = self._some(life.deleted)
        deletes = self.chance.random() < 0.4
        self._commit_by_rest(life, self._version(life, [], names) if deletes else self._version(life, names))

    def _request(self, life: Life, version: int) -> Any:
        request = WriteRequest()
        for write in life.writes[version]:
            made = request.writes.add()
            if write.fields is None:
                made.delete = f"{ROOT}/{write.name}"
                continue
            made.update.name = f"{ROOT}/{write.name}"
            for path, value in write.fields.items():
                encode(value, made.update.fields[path])
        return request

    def _commit_by_rest(self, life: Life, version: int) -> None:
        body = json.dumps({"writes": json_format.MessageToDict(self._request(life, version))["writes"]})
        self.writer.request("POST", f"/v1/{ROOT}:commit", body, {"Authorization": "Bearer owner"})
        answer = self.writer.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise Finding(f"a commit was refused: {text[:300]!r}")
        life.committed(version, microseconds(json_format.Parse(text, METHODS["Commit"].response()).commit_time))

    # The Write stream

    def _open_write(self, life: Life) -> None:
        def arrived(stream: Stream) -> None:
            for message in stream.take_messages():
                self._written(life, writing, WriteResponse.FromString(message))

        def lost() -> None:
            # Some of the commits are made, perhaps.
            self.counts["lost"] += len(writing.unanswered)
            if self.writing is writing:
                self.writing = None

        _, stream = self._open_call(SERVICE + "Write", WriteRequest(database=DATABASE), "Write", self._ended_well)
        self._stays_open(stream, arrived, lost)
        writing = self.writing = _Writing(stream)

    def _stays_open(self, stream: Stream, arrived: Any, lost: Any) -> None:
        stream.stays_open, stream.arrived, stream.lost = True, arrived, lost
        if self.chance.random() < 0.3 and not self.hurries:
            stream.cancels_after = self.chance.choice([1, 200, 20_000, 400_000]) + self.chance.randrange(1_000)
        else:
            stream.cancels_after = None

    def _ended_well(self, stream: Stream) -> None:
        if self._succeeded(stream) or stream.stays_open:
            raise Finding(f"{stream.what} has ended before its client wanted it")

    def _write(self, life: Life, writing: _Writing) -> None:
        version = self._version(life, self._some(life.shared))
        request = self._request(life, version)
        request.stream_token = writing.token
        writing.unanswered.append(version)
        writing.stream.body += framed(request, compresses=False)

    def _written(self, life: Life, writing: _Writing, answer: Any) -> None:
        if not answer.stream_token:
            raise Finding("an answer of Write without a token")
        writing.token = answer.stream_token
        if answer.stream_id:
            return
        version = writing.unanswered.pop(0)
        if len(answer.write_results) != len(life.writes[version]):
            raise Finding(f"{len(answer.write_results)} results of {len(life.writes[version])} writes")
        life.committed(version, microseconds(answer.commit_time))
        self.counts["commits"] += 1

    # The Listen stream

    def _listen(self, life: Life) -> None:
        if life.watcher.targets:
            self.counts["resumed"] += 1
            return life.watcher.reconnect(by_time=self.chance.random() < 0.3, expects=self.chance.random() < 0.5)
        life.watcher.connect()
        for number in range(len(life.queries)):
            life.watcher.add(number + 1, number)

    def _open_listen(self) -> _Requests:
        # The stream itself begins with the first request.
        return _Requests(self)

    def send_listen(self, request: Any) -> None:
        if self.listening:
            self.listening.body += framed(request, compresses=False)
            return
        life = self.life
        assert life

        def arrived(stream: Stream) -> None:
            for message in stream.take_messages():
                # One that is ended may still bring some, which its client drops.
                if self.listening is stream:
                    self._heard(life, ListenResponse.FromString(message))

        def lost() -> None:
            if self.listening is stream:
                self.listening = None

        _, stream = self._open_call(SERVICE + "Listen", request, "Listen", self._ended_well)
        self._stays_open(stream, arrived, lost)
        self.listening = stream

    def _heard(self, life: Life, answer: Any) -> None:
        if answer.WhichOneof("response_type") == "document_change":
            document = answer.document_change.document
            life.committed(document.fields["v"].integer_value, microseconds(document.update_time))
        if life.watcher.process(answer):
            life.has_news = True


def microseconds(time: Any) -> int:
    if time.nanos % 1_000:
        raise Finding(f"a time finer than versions: {time}")
    return int(time.ToMicroseconds())
