"""An independent client of WebChannel, the protocol of browsers for Listen and Write; strict where theirs is lenient.

A session is a handshake POST, further POSTs with requests (the forward channel), and one GET at a time whose body
contains the answers (the back channel). Everything that the server sends is validated: lengths of frames in UTF-16
units, array ids that ascend one by one, the shape of each POST's answer. An error raises `ProtocolFault` from the next
`take`. Source: the public WebChannel client of google/closure-library, and the requests of the Firebase Web SDK.
"""

from __future__ import annotations

import json
import queue
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import grpc
from google.protobuf import json_format

from support.frames import Frames, ProtocolFault, frames
from support.patience import PATIENCE
from support.streams import ListenWords
from support.ways import Answer, Download, Http1, Way
from support.wire import message_class

FORM = "application/x-www-form-urlencoded"
#: GETs in a row that a client makes although they returned nothing.
EMPTY_GETS_MAX = 3
#: GETs in a row that it makes although they get no answer.
REFUSED_GETS_MAX = 3


class ChannelRefused(Exception):
    """An HTTP status other than 200, which ends a channel."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer.status}: {answer.text[:300]}")
        self.status = answer.status
        self.text = answer.text


class StreamFailed(grpc.RpcError):
    """A status in an array; has the form of gRPC's errors, so that tests can be shared."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error)
        self.error = error

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode[self.error["status"]]

    def details(self) -> str:
        return str(self.error.get("message", ""))


# A session


def form(messages: list[dict[str, Any]], offset: int, headers: dict[str, str] | None = None) -> bytes:
    """The body of a POST, as browsers write it."""
    members = []
    if headers is not None:
        lines = "".join(f"{name}:{value}\r\n" for name, value in headers.items())
        members.append("headers=" + quote(lines, safe="()"))
    members.append(f"count={len(messages)}")
    if messages:
        members.append(f"ofs={offset}")
    for number, message in enumerate(messages):
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        members.append(f"req{number}___data__=" + quote(text, safe="()"))
    return "&".join(members).encode()


@dataclass
class Post:
    """One POST of the forward channel, stored so that it can be repeated."""

    number: int
    body: bytes
    attempts: int = 0


@dataclass
class Counts:
    """The events on a session's channels."""

    gets: int = 0
    noops: int = 0
    #: GETs that the server broke without an orderly end.
    broken: int = 0
    #: Of each GET that ended, how many arrays it brought.
    arrays_of_gets: list[int] = field(default_factory=list)


class Session:
    """One bidirectional stream; the handshake is made by `start`, which carries the first messages.

    `deliver` gets each message that arrives, on the back channel's thread; at the end None or the exception that ended
    the session.
    """

    def __init__(
        self,
        way: Way,
        method: str,
        database: str,
        deliver: Callable[[Any], None],
        *,
        polls: bool = False,
        poll_milliseconds: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.way = way
        self.path = f"/google.firestore.v1.Firestore/{method}/channel"
        self.database = quote(database, safe="()")
        self.polls = polls
        self.counts = Counts()
        #: The last array that was handled: what is acknowledged.
        self.last_id = 0
        self.session_id: str | None = None
        self.keep_alive_seconds: float | None = None
        self.posts: list[Post] = []
        self._headers = {"Authorization": "Bearer owner"} if headers is None else headers
        self._poll_milliseconds = poll_milliseconds
        self._deliver = deliver
        self._http_session: str | None = None
        self._next_number = random.randrange(100_000)
        self._sent = 0
        self._announced = 0
        self._sending = threading.Lock()
        self._state = threading.Condition()
        self._download: Download | None = None
        self._refusals = 0
        self._wants_get = True
        self._is_closed = False
        self._has_ended = False
        self._reader = threading.Thread(target=self._receive, daemon=True)

    # The forward channel

    def start(self, *messages: dict[str, Any], reads: bool = True) -> None:
        """Without `reads` no GET is made before `attach`."""
        self._wants_get = reads
        with self._sending:
            number = self._take_number()
            target = (
                f"{self.path}?VER=8&database={self.database}&RID={number}&CVER=22"
                f"&X-HTTP-Session-Id=gsessionid&zx={_nonce()}&t=1"
            )
            answer = self.way.send("POST", target, form(list(messages), 0, self._headers), {"Content-Type": FORM})
            if answer.status != 200:
                raise ChannelRefused(answer)
            self._sent = len(messages)
            arrays = self._only_frame(answer)
            self._greet(arrays[0])
            self._http_session = answer.headers.get("x-http-session-id")
            for array in arrays[1:]:
                self._take(array)
        self._reader.start()

    def _greet(self, array: Any) -> None:
        match array:
            case [0, ["c", str(session_id), "" | None, 8, *rest]] if session_id:
                self.session_id = session_id
                if len(rest) > 1:
                    self.keep_alive_seconds = rest[1] / 1000
            case _:
                raise ProtocolFault(f"the handshake was answered with {array}")

    def send(self, *messages: dict[str, Any], loses_answer: bool = False) -> list[int]:
        """Sends messages in one POST, which is repeated as long as its connection breaks; returns the POST's answer.

        With `loses_answer` the first attempt's answer is not read, so that the server gets the POST twice.
        """
        with self._sending:
            post = Post(self._take_number(), form(list(messages), self._sent))
            self._sent += len(messages)
            self.posts.append(post)
            if loses_answer:
                assert isinstance(self.way, Http1)
                post.attempts += 1
                self.way.send_and_leave(self.post_target(post), post.body, {"Content-Type": FORM})
            return self._deliver_post(post)

    def repeat(self, post: Post) -> list[int]:
        with self._sending:
            return self._deliver_post(post)

    def _deliver_post(self, post: Post) -> list[int]:
        for attempt in range(4):
            post.attempts += 1
            acknowledged = self.last_id
            try:
                answer = self.way.send("POST", self.post_target(post), post.body, {"Content-Type": FORM})
            except OSError:
                if attempt == 3:
                    raise
                continue
            if answer.status != 200:
                raise ChannelRefused(answer)
            return self._check(self._only_frame(answer), acknowledged)
        raise AssertionError("not reached")

    def _check(self, state: list[Any], acknowledged: int) -> list[int]:
        if len(state) != 3 or any(type(number) is not int for number in state):
            raise ProtocolFault(f"a POST was answered with {state}")
        attached, last, waiting = state
        if attached not in (0, 1) or last < acknowledged or last < self._announced or waiting < 0:
            raise ProtocolFault(f"a POST was answered with {state}; {acknowledged} was acknowledged")
        self._announced = last
        return state

    @staticmethod
    def _only_frame(answer: Answer) -> list[Any]:
        found = frames(answer.body)
        if len(found) != 1:
            raise ProtocolFault(f"the answer to a POST has {len(found)} frames: {answer.text[:300]}")
        return found[0]

    def _take_number(self) -> int:
        number = self._next_number
        self._next_number += 1
        return number

    def of_session(self) -> str:
        """The parameters of a query that identify the session."""
        parts = f"VER=8&database={self.database}"
        if self._http_session:
            parts += f"&gsessionid={quote(self._http_session, safe='')}"
        return parts + f"&SID={quote(self.session_id or '', safe='')}"

    def post_target(self, post: Post) -> str:
        return (
            f"{self.path}?{self.of_session()}&RID={post.number}&AID={self.last_id}&zx={_nonce()}&t={post.attempts or 1}"
        )

    def get_target(self, acknowledged: int | None = None, polls: bool | None = None) -> str:
        polls = self.polls if polls is None else polls
        aid = self.last_id if acknowledged is None else acknowledged
        patience = f"&TO={self._poll_milliseconds}" if polls and self._poll_milliseconds is not None else ""
        return (
            f"{self.path}?{self.of_session()}&RID=rpc&AID={aid}&CI={int(polls)}{patience}&TYPE=xmlhttp"
            f"&zx={_nonce()}&t=1"
        )

    def terminate(self) -> Answer:
        """As a browser does by a beacon: no body, and no acknowledgement."""
        self._close()
        with self._sending:
            target = f"{self.path}?{self.of_session()}&RID={self._take_number()}&TYPE=terminate&zx={_nonce()}"
            return self.way.send("POST", target, b"", {"Content-Type": "text/plain;charset=UTF-8"})

    def vanish(self) -> None:
        """Disconnects without closing the session, like a closed laptop."""
        self._close()
        self.way.close()

    def _close(self) -> None:
        with self._state:
            self._is_closed = True
            self._state.notify_all()
            download = self._download
        if download is not None:
            download.cut()

    # The back channel

    def cut(self) -> None:
        """Breaks the GET's connection; another GET continues after the complete arrays."""
        with self._state:
            download = self._download
        if download is not None:
            download.cut()

    def detach(self) -> None:
        """Breaks the GET's connection and makes none until `attach`; messages of the server must wait meanwhile."""
        with self._state:
            self._wants_get = False
        self.cut()
        with self._state:
            assert self._state.wait_for(lambda: self._download is None, PATIENCE)

    def attach(self) -> None:
        with self._state:
            self._wants_get = True
            self._state.notify_all()

    def wait_until_attached(self) -> None:
        """Until a GET's headers have come."""
        with self._state:
            assert self._state.wait_for(lambda: self._download is not None or self._has_ended, PATIENCE)

    def _receive(self) -> None:
        ending: BaseException | None = None
        try:
            empty = 0
            while self._wait_for_wish():
                count = self._get()
                empty = empty + 1 if count == 0 else 0
                if empty > EMPTY_GETS_MAX:
                    raise ProtocolFault(f"{empty} GETs in a row brought nothing")
        except BaseException as error:  # noqa: BLE001 - told to who takes from the stream
            ending = None if self._is_closed else error
        with self._state:
            self._has_ended = True
            self._state.notify_all()
        self._deliver(ending)

    def _wait_for_wish(self) -> bool:
        with self._state:
            self._state.wait_for(lambda: self._wants_get or self._is_closed)
            return not self._is_closed

    def _get(self) -> int | None:
        """Reads one GET to its end. Returns its number of arrays, None when it broke."""
        self.counts.gets += 1
        try:
            download = self.way.open(self.get_target())
        except OSError:
            if self._is_closed:
                return None
            self.counts.broken += 1
            self._refusals += 1
            if self._refusals > REFUSED_GETS_MAX:
                raise
            time.sleep(0.05)
            return None
        self._refusals = 0
        with self._state:
            self._download = download
            is_wanted = self._wants_get and not self._is_closed
            self._state.notify_all()
        count = 0
        try:
            if not is_wanted:
                return None
            if download.status != 200:
                raise ChannelRefused(Answer(download.status, download.headers, b"".join(download.pieces())))
            reader = Frames()
            for piece in download.pieces():
                for frame in reader.feed(piece):
                    for array in frame:
                        count += 1
                        self._take(array)
            reader.finish()
            self.counts.arrays_of_gets.append(count)
            return count
        except OSError:
            self.counts.broken += 1
            return None
        finally:
            download.close()
            with self._state:
                self._download = None
                self._state.notify_all()

    def _take(self, array: Any) -> None:
        match array:
            case [int(number), [content]]:
                if number != self.last_id + 1:
                    raise ProtocolFault(f"array {number} came behind {self.last_id}: {content}")
                self.last_id = number
            case _:
                raise ProtocolFault(f"no array of a session: {array}")
        match content:
            case "noop":
                self.counts.noops += 1
            case "close":
                raise _Closed
            case "stop":
                raise ConnectionAbortedError("the server aborts the session")
            case {"error": error}:
                # The rest of the frame is the close, which adds nothing.
                raise StreamFailed(error)
            case dict():
                self._deliver(content)
            case _:
                raise ProtocolFault(f"no message: {array}")


class _Closed(Exception):
    """The server closes the session in order."""


def _nonce() -> str:
    return f"{random.getrandbits(50):x}"


# Streams with the interface of gRPC's


class WebStream:
    """`support.streams.Stream` over WebChannel."""

    def __init__(self, address: str, method: str, database: str, *, way: Way | None = None, **options: Any) -> None:
        self._response = message_class(f"{method}Response")
        self._answers: queue.Queue[Any] = queue.Queue()
        self.session = Session(way or Http1(address), method, database, self._answers.put, **options)

    def send(self, *requests: Any, loses_answer: bool = False) -> None:
        messages = [json_format.MessageToDict(request) for request in requests]
        if self.session.session_id is None:
            self.session.start(*messages)
        else:
            self.session.send(*messages, loses_answer=loses_answer)

    def half_close(self) -> None:
        """The only way for a browser to report that it is done."""
        self.session.terminate()

    def take(self, seconds: float = PATIENCE) -> Any:
        """The next message, None at a good end; raises any other end of the stream, or queue.Empty."""
        answer = self._answers.get(timeout=seconds)
        if answer is None or isinstance(answer, _Closed):
            return None
        if isinstance(answer, BaseException):
            raise answer
        return json_format.ParseDict(answer, self._response(), max_recursion_depth=400)

    def is_silent(self, seconds: float = 0.3) -> bool:
        try:
            self._answers.put(self._answers.get(timeout=seconds))
        except queue.Empty:
            return True
        return False

    def cancel(self) -> None:
        if self.session.session_id is not None:
            with suppress(OSError):
                self.session.terminate()
        self.session.way.close()


class WebListen(ListenWords, WebStream):
    """`support.streams.Listen` over WebChannel."""

    def __init__(self, address: str, project: str, **options: Any) -> None:
        ListenWords.__init__(self, project)
        WebStream.__init__(self, address, "Listen", self.database, **options)


class WebWrite(WebStream):
    """A Write stream over WebChannel."""

    def __init__(self, address: str, project: str, **options: Any) -> None:
        super().__init__(address, "Write", f"projects/{project}/databases/(default)", **options)
