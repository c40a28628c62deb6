"""Firestore's bidirectional methods, message by message."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import grpc

from support.patience import PATIENCE
from support.wire import SERVICE, message_class

ListenRequest = message_class("ListenRequest")
WriteRequest = message_class("WriteRequest")


PREFIX = "google-cloud-resource-prefix"


class Stream:
    """Requests are sent by `send`; answers are returned by `take`, in order, with a timeout."""

    def __init__(
        self,
        channel: grpc.Channel,
        method: str,
        database: str = "",
        *,
        is_paused: bool = False,
        authorization: str | None = "Bearer owner",
    ) -> None:
        """The emulator requires the database in the head; Hearth reads it from the first message."""
        stub = channel.stream_stream(
            SERVICE + method,
            request_serializer=message_class(f"{method}Request").SerializeToString,
            response_deserializer=message_class(f"{method}Response").FromString,
        )
        self._requests: queue.Queue[Any] = queue.Queue()
        self._answers: queue.Queue[Any] = queue.Queue()
        self._may_read = threading.Event()
        self._may_read.set()
        head = [(PREFIX, database)] if database else []
        if authorization is not None:
            head.append(("authorization", authorization))
        self.call = stub(iter(self._requests.get, None), metadata=head)
        if not is_paused:
            self.resume()

    def resume(self) -> None:
        """Begins to read; until then the server is limited by the capacity of the connection."""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            for answer in self.call:
                self._may_read.wait()
                self._answers.put(answer)
            self._answers.put(None)
        except grpc.RpcError as error:
            self._answers.put(error)

    def hold(self, until: threading.Event) -> None:
        """Stops reading until then: flow control makes the server wait."""
        self._may_read = until

    def send(self, request: Any) -> None:
        self._requests.put(request)

    def half_close(self) -> None:
        self._requests.put(None)

    def take(self, seconds: float = PATIENCE) -> Any:
        """The next message, None at a good end; raises any other end of the stream, or queue.Empty."""
        answer = self._answers.get(timeout=seconds)
        if isinstance(answer, grpc.RpcError):
            raise answer
        return answer

    def is_silent(self, seconds: float = 0.3) -> bool:
        try:
            self._answers.put(self._answers.get(timeout=seconds))
        except queue.Empty:
            return True
        return False

    def cancel(self) -> None:
        self.call.cancel()


class ListenWords:
    """Requests and answers of a Listen stream in short form, for any transport."""

    send: Callable[..., None]
    take: Callable[..., Any]

    def __init__(self, project: str) -> None:
        self.database = f"projects/{project}/databases/(default)"
        self.root = f"{self.database}/documents"
        #: Of the last boundary.
        self.read_time = 0
        self.token = b""

    def add_query(self, target: int, collection: str, **more: Any) -> None:
        request = ListenRequest(database=self.database)
        request.add_target.target_id = target
        request.add_target.query.parent = self.root
        query = request.add_target.query.structured_query
        query.from_.add(collection_id=collection, all_descendants=more.pop("group", False))
        for path, op, number in more.pop("where", []):
            composite = query.where.composite_filter
            composite.op = 1
            field = composite.filters.add().field_filter
            field.field.field_path, field.op, field.value.integer_value = path, op, number
        for path, direction in more.pop("order", []):
            query.order_by.add(field=dict(field_path=path), direction=direction)
        for path in more.pop("select", []):
            query.select.fields.add(field_path=path)
        if "limit" in more:
            query.limit.value = more.pop("limit")
        self._add(request, more)

    def _add(self, request: Any, more: dict[str, Any]) -> None:
        if "read_time" in more:
            request.add_target.read_time.FromNanoseconds(more.pop("read_time"))
        if "expected_count" in more:
            request.add_target.expected_count.value = more.pop("expected_count")
        for name, value in more.items():
            setattr(request.add_target, name, value)
        self.send(request)

    def add_documents(self, target: int, *paths: str, **more: Any) -> None:
        request = ListenRequest(database=self.database)
        request.add_target.target_id = target
        request.add_target.documents.documents.extend(f"{self.root}/{path}" for path in paths)
        self._add(request, more)

    def remove(self, target: int) -> None:
        self.send(ListenRequest(database=self.database, remove_target=target))

    def next(self, seconds: float = PATIENCE) -> tuple[Any, ...] | None:
        message = self.take(seconds)
        if message is None:
            return None
        kind = message.WhichOneof("response_type")
        body = getattr(message, kind)
        if kind == "target_change":
            return self._target_change(body)
        if kind == "document_change":
            ids = (sorted(body.target_ids), sorted(body.removed_target_ids))
            value = body.document.fields["n"].integer_value if "n" in body.document.fields else None
            assert body.document.update_time.ToNanoseconds() > 0
            return ("change", self._path(body.document.name), value, *ids)
        if kind == "document_delete":
            assert body.read_time.ToNanoseconds() > 0
            return ("delete", self._path(body.document), sorted(body.removed_target_ids))
        if kind == "document_remove":
            assert body.read_time.ToNanoseconds() > 0
            return (kind, self._path(body.document), sorted(body.removed_target_ids))
        return (kind, body)

    def _path(self, name: str) -> str:
        assert name.startswith(self.root + "/")
        return name[len(self.root) + 1 :]

    def _target_change(self, change: Any) -> tuple[Any, ...]:
        kind = ["NO_CHANGE", "ADD", "REMOVE", "CURRENT", "RESET"][change.target_change_type]
        if kind == "NO_CHANGE":
            assert not change.target_ids and change.resume_token
            time = change.read_time.ToNanoseconds()
            assert time >= self.read_time > -1
            self.read_time, self.token = time, change.resume_token
            return ("boundary",)
        if change.cause.code:
            return (kind, list(change.target_ids), change.cause.code, change.cause.message)
        return (kind, list(change.target_ids))

    def snapshot(self, seconds: float = PATIENCE) -> list[tuple[Any, ...]]:
        """All up to the next boundary."""
        gathered = []
        while (message := self.next(seconds)) != ("boundary",):
            assert message is not None, gathered
            gathered.append(message)
        return gathered


class Listen(ListenWords, Stream):
    """A Listen stream over gRPC."""

    def __init__(self, channel: grpc.Channel, project: str, **options: Any) -> None:
        ListenWords.__init__(self, project)
        Stream.__init__(self, channel, "Listen", **options)
