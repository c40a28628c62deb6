"""gRPC below the client libraries: health, reflection, deadlines, broken and oversized messages."""

from __future__ import annotations

import base64
import shutil
import struct
import subprocess
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from support.patience import PATIENCE
from support.wire import METHODS, SERVICE, parse

OWNER = [("authorization", "Bearer owner")]


def call(channel: grpc.Channel, name: str, body: Any, **options: Any) -> Any:
    """Calls a method with a body in JSON form; a stream is returned as a list."""
    method = METHODS[name]
    make = channel.unary_stream if method.streams else channel.unary_unary
    stub = make(
        method.path,
        request_serializer=method.request.SerializeToString,
        response_deserializer=method.response.FromString,
    )
    answer = stub(parse(method, body), metadata=OWNER, **options)
    return list(answer) if method.streams else answer


def raw(channel: grpc.Channel, path: str, message: bytes, **options: Any) -> bytes:
    """Sends bytes unchanged."""
    return channel.unary_unary(path)(message, metadata=OWNER, **options)


def code_of(error: pytest.ExceptionInfo[grpc.RpcError]) -> grpc.StatusCode:
    return error.value.code()


class TestServices:
    @pytest.mark.emulator_differs("it has no health service")
    @pytest.mark.parametrize("service", ["", "google.firestore.v1.Firestore"])
    def test_health(self, channel: grpc.Channel, service: str) -> None:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING

    @pytest.mark.emulator_differs("it has no health service")
    def test_health_of_an_unknown_service(self, channel: grpc.Channel) -> None:
        stub = health_pb2_grpc.HealthStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            stub.Check(health_pb2.HealthCheckRequest(service="none.Such"), timeout=PATIENCE)
        assert code_of(caught) == grpc.StatusCode.NOT_FOUND

    @pytest.mark.emulator_differs("it has no reflection")
    def test_reflection(self, channel: grpc.Channel) -> None:
        database = ProtoReflectionDescriptorDatabase(channel)
        assert "google.firestore.v1.Firestore" in database.get_services()
        described = database.FindFileContainingSymbol("google.firestore.v1.Firestore")
        methods = {m.name for service in described.service for m in service.method}
        assert METHODS.keys() <= methods

    def test_unknown_method_and_unknown_service(self, channel: grpc.Channel) -> None:
        for path in (SERVICE + "NoSuchMethod", "/no.such.Service/Method"):
            with pytest.raises(grpc.RpcError) as caught:
                raw(channel, path, b"", timeout=PATIENCE)
            assert code_of(caught) == grpc.StatusCode.UNIMPLEMENTED

    @pytest.mark.emulator_differs("it has no partitions")
    def test_partition_query_without_a_count(self, channel: grpc.Channel, project: str) -> None:
        with pytest.raises(grpc.RpcError) as caught:
            call(channel, "PartitionQuery", {"parent": f"projects/{project}/databases/(default)/documents"})
        assert code_of(caught) == grpc.StatusCode.INVALID_ARGUMENT


class TestMessages:
    @pytest.mark.emulator_differs("it answers INTERNAL or CANCELLED")
    @pytest.mark.parametrize("message", [b"\xff\xff\xff", b"\x0a\xff\x01", b"\x0a\x05ab", b"\x0a\x02\xff\xfe"])
    def test_garbage_is_refused(self, channel: grpc.Channel, message: bytes) -> None:
        with pytest.raises(grpc.RpcError) as caught:
            raw(channel, SERVICE + "GetDocument", message, timeout=PATIENCE)
        assert code_of(caught) in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL)

    def test_unknown_fields_are_ignored(self, channel: grpc.Channel, project: str) -> None:
        method = METHODS["BeginTransaction"]
        known = parse(method, {"database": f"projects/{project}/databases/(default)"}).SerializeToString()
        unknown = b"\xc2\x3e\x03abc" + b"\xc8\x3e\x01"
        assert method.response.FromString(raw(channel, method.path, known + unknown, timeout=PATIENCE)).transaction

    @pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
    def test_compressed_requests(self, channel: grpc.Channel, project: str, compression: grpc.Compression) -> None:
        name = f"projects/{project}/databases/(default)/documents/c/a"
        fields = {"text": {"stringValue": "compressible " * 1000}}
        write = {"database": name.split("/documents")[0], "writes": [{"update": {"name": name, "fields": fields}}]}
        try:
            call(channel, "Commit", write, compression=compression, timeout=PATIENCE)
        except grpc.RpcError as error:
            # A server need not support deflate, but must report that in the form that the protocol requires.
            assert compression is grpc.Compression.Deflate and error.code() == grpc.StatusCode.UNIMPLEMENTED
            return
        assert len(call(channel, "GetDocument", {"name": name}).fields["text"].string_value) == 13_000

    @pytest.mark.emulator_differs("it takes no message over 4 MiB")
    def test_request_of_11_mebibytes_and_past_it(self, channel: grpc.Channel, project: str) -> None:
        database = f"projects/{project}/databases/(default)"

        def commit(count: int) -> Any:
            fields = {"text": {"stringValue": "x" * 1_000_000}}
            updates = [{"update": {"name": f"{database}/documents/c/{n}", "fields": fields}} for n in range(count)]
            return call(channel, "Commit", {"database": database, "writes": updates}, timeout=PATIENCE)

        assert len(commit(10).write_results) == 10
        with pytest.raises(grpc.RpcError) as caught:
            commit(12)
        assert code_of(caught) in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED)
        # The connection is still usable.
        assert len(commit(1).write_results) == 1

    def test_large_answer(self, channel: grpc.Channel, project: str) -> None:
        """An answer far above HTTP/2's first window must be throttled, not truncated."""
        database = f"projects/{project}/databases/(default)"
        for n in range(20):
            fields = {"text": {"stringValue": chr(97 + n) * 900_000}}
            write = {"update": {"name": f"{database}/documents/c/{n:02}", "fields": fields}}
            call(channel, "Commit", {"database": database, "writes": [write]})
        query = {"parent": f"{database}/documents", "structuredQuery": {"from": [{"collectionId": "c"}]}}
        found = [message.document.fields["text"].string_value for message in call(channel, "RunQuery", query)]
        assert [(text[0], len(text)) for text in found if text] == [(chr(97 + n), 900_000) for n in range(20)]


class TestCalls:
    def test_deadline_that_has_passed(self, channel: grpc.Channel, project: str) -> None:
        """A read that waits for another transaction's lock ends at its deadline."""
        database = f"projects/{project}/databases/(default)"
        name = f"{database}/documents/c/a"

        def begin() -> bytes:
            return call(channel, "BeginTransaction", {"database": database, "options": {"readWrite": {}}}).transaction

        call(channel, "Commit", {"database": database, "writes": [{"update": {"name": name}}]})
        first, second = begin(), begin()
        call(channel, "GetDocument", {"name": name, "transaction": base64.b64encode(first).decode()})
        with pytest.raises(grpc.RpcError) as caught:
            request = {"name": name, "transaction": base64.b64encode(second).decode()}
            call(channel, "GetDocument", request, timeout=0.3)
        assert code_of(caught) == grpc.StatusCode.DEADLINE_EXCEEDED

    def test_cancelled_streams_leave_the_connection_good(self, channel: grpc.Channel, project: str) -> None:
        database = f"projects/{project}/databases/(default)"
        for n in range(30):
            write = {"update": {"name": f"{database}/documents/c/{n}", "fields": {"t": {"stringValue": "x" * 50_000}}}}
            call(channel, "Commit", {"database": database, "writes": [write]})
        method = METHODS["RunQuery"]
        query = parse(method, {"parent": f"{database}/documents", "structuredQuery": {"from": [{"collectionId": "c"}]}})
        stub = channel.unary_stream(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        for _ in range(20):
            stream = stub(query, metadata=OWNER)
            next(stream)
            stream.cancel()
        assert len(list(stub(query, metadata=OWNER))) == 30

    def test_errors_carry_their_text(self, channel: grpc.Channel, project: str) -> None:
        """The message is percent-encoded in the trailer; it must be decoded to the same string."""
        name = f"projects/{project}/databases/(default)/documents/c/zażółć % \U0001f600"
        with pytest.raises(grpc.RpcError) as caught:
            call(channel, "GetDocument", {"name": name})
        assert code_of(caught) == grpc.StatusCode.NOT_FOUND
        assert name in (caught.value.details() or "")

    def test_a_hundred_calls_at_once(self, channel: grpc.Channel, project: str) -> None:
        method = METHODS["Commit"]
        stub = channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        database = f"projects/{project}/databases/(default)"
        calls = [
            stub.future(
                parse(method, {"database": database, "writes": [{"update": {"name": f"{database}/documents/c/{n}"}}]}),
                metadata=OWNER,
            )
            for n in range(200)
        ]
        times = [(c.result().commit_time.seconds, c.result().commit_time.nanos) for c in calls]
        assert len(set(times)) == 200

    def test_begin_needs_no_authorization(self, channel: grpc.Channel, project: str) -> None:
        method = METHODS["BeginTransaction"]
        stub = channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        assert stub(parse(method, {"database": f"projects/{project}/databases/(default)"}), timeout=PATIENCE).transaction


class TestFraming:
    """A request that no gRPC library sends: curl uses HTTP/2 without one."""

    @staticmethod
    def _post(address: str, content: bytes, *headers: str, content_type: str = "application/grpc") -> str:
        if shutil.which("curl") is None:
            pytest.skip("curl is not installed")
        command = [
            "curl",
            "-sS",
            "-m",
            "5",
            "--http2-prior-knowledge",
            "-D",
            "-",
            "-o",
            "/dev/null",
            "--data-binary",
            "@-",
        ]
        command += ["-H", f"content-type: {content_type}", "-H", "te: trailers"]
        for header in headers:
            command += ["-H", header]
        target = f"http://{address}{SERVICE}GetDocument"
        run = subprocess.run([*command, target], input=content, capture_output=True, check=False)
        return run.stdout.decode().lower()

    def test_errors_are_http_200_with_a_grpc_status(self, address: str) -> None:
        answer = self._post(address, struct.pack(">BI", 0, 0))
        assert answer.startswith("http/2 200")
        assert "grpc-status: 3" in answer
        assert "content-type: application/grpc" in answer

    @pytest.mark.emulator_differs("it answers INTERNAL or nothing")
    @pytest.mark.parametrize("frame", [b"\x00\x00\x00\x00\x05ab", b"\x00\x00", b"\x07\x00\x00\x00\x00"])
    def test_broken_frames_are_answered(self, address: str, frame: bytes) -> None:
        answer = self._post(address, frame)
        assert answer.startswith("http/2 200") and "grpc-status: " in answer and "grpc-status: 0" not in answer

    @pytest.mark.emulator_differs("it answers HTTP 415 otherwise")
    def test_another_content_type(self, address: str) -> None:
        answer = self._post(address, b"{}", content_type="text/plain")
        assert answer.startswith(("http/2 415", "http/2 404", "http/2 400"))

    def test_deadline_in_words_of_the_protocol(self, address: str) -> None:
        for timeout in ("1H", "5S", "500m", "100000u", "5000000n"):
            assert "grpc-status: " in self._post(address, struct.pack(">BI", 0, 0), f"grpc-timeout: {timeout}")
