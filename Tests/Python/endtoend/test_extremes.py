"""The largest and smallest numbers in each numeric field of each request: none of them ends the server."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from support.patience import PATIENCE
from support.program import BINARY, Program, program
from support.wire import METHODS, parse

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

DATABASE = "projects/p/databases/(default)"
DOCUMENTS = f"{DATABASE}/documents"
QUERY = {"from": [{"collectionId": "c"}]}
WRITE = {"update": {"name": f"{DOCUMENTS}/c/x", "fields": {"n": {"integerValue": "1"}}}}

#: A valid request, by method; without one the method is called with the field alone.
BODIES: dict[str, dict[str, Any]] = {
    "GetDocument": {"name": f"{DOCUMENTS}/c/d"},
    "ListDocuments": {"parent": DOCUMENTS, "collectionId": "c"},
    "CreateDocument": {"parent": DOCUMENTS, "collectionId": "c", "document": {}},
    "UpdateDocument": {"document": {"name": f"{DOCUMENTS}/c/x"}},
    "DeleteDocument": {"name": f"{DOCUMENTS}/c/y"},
    "BatchGetDocuments": {"database": DATABASE, "documents": [f"{DOCUMENTS}/c/d"]},
    "BeginTransaction": {"database": DATABASE},
    "Commit": {"database": DATABASE, "writes": [WRITE]},
    "BatchWrite": {"database": DATABASE, "writes": [WRITE]},
    "RunQuery": {"parent": DOCUMENTS, "structuredQuery": QUERY},
    "RunAggregationQuery": {
        "parent": DOCUMENTS,
        "structuredAggregationQuery": {"structuredQuery": QUERY, "aggregations": [{"alias": "n", "count": {}}]},
    },
    "PartitionQuery": {
        "parent": DOCUMENTS,
        "partitionCount": "2",
        "structuredQuery": {
            "from": [{"collectionId": "c", "allDescendants": True}],
            "orderBy": [{"field": {"fieldPath": "__name__"}}],
        },
    },
    "ListCollectionIds": {"parent": DOCUMENTS},
}
#: The REST name of the methods that have one after a colon.
VERBS = {name: name[0].lower() + name[1:] for name in BODIES} | {"BatchGetDocuments": "batchGet"}

WHOLE = {
    FieldDescriptor.CPPTYPE_INT32: [2**31 - 1, -(2**31), -1, 0],
    FieldDescriptor.CPPTYPE_INT64: [2**63 - 1, -(2**63), 2**63 - 61, 253402300799, 253402300800, -62135596801, -1],
    FieldDescriptor.CPPTYPE_UINT32: [2**32 - 1],
    FieldDescriptor.CPPTYPE_UINT64: [2**64 - 1],
    FieldDescriptor.CPPTYPE_DOUBLE: [1.7976931348623157e308, -1.7976931348623157e308, 5e-324, float("inf"), float("nan")],
    FieldDescriptor.CPPTYPE_FLOAT: [3.4e38],
    FieldDescriptor.CPPTYPE_ENUM: [2**31 - 1, -(2**31)],
}


def numbers(kind: Descriptor, above: tuple[str, ...] = ()) -> Iterator[tuple[FieldDescriptor, ...]]:
    """The path to each numeric field below a message; no type occurs twice on it."""
    if kind.full_name in above or len(above) > 6:
        return
    for field in kind.fields:
        if field.cpp_type in WHOLE:
            yield (field,)
        elif field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for rest in numbers(field.message_type, (*above, kind.full_name)):
                yield (field, *rest)


def put(message: Any, way: tuple[FieldDescriptor, ...], number: Any) -> None:
    field, *rest = way
    if rest:
        if field.is_repeated if hasattr(field, "is_repeated") else field.label == FieldDescriptor.LABEL_REPEATED:
            inner = getattr(message, field.name)
            put(inner[0] if len(inner) else inner.add(), tuple(rest), number)
        else:
            inner = getattr(message, field.name)
            inner.SetInParent()
            put(inner, tuple(rest), number)
    elif field.is_repeated if hasattr(field, "is_repeated") else field.label == FieldDescriptor.LABEL_REPEATED:
        getattr(message, field.name).append(number)
    else:
        setattr(message, field.name, number)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with program(tmp_path_factory.mktemp("extremes"), "--memory", "--project", "p") as running:
        yield running


@pytest.mark.parametrize("name", sorted(BODIES))
def test_every_number(server: Program, name: str) -> None:
    method = METHODS[name]
    rest = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    tried = 0
    with grpc.insecure_channel(server.address) as channel:
        make = channel.unary_stream if method.streams else channel.unary_unary
        stub = make(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        for way in numbers(method.request.DESCRIPTOR):
            for number in WHOLE[way[-1].cpp_type]:
                message = parse(method, BODIES[name])
                put(message, way, number)
                place = ".".join(field.name for field in way)
                try:
                    answer = stub(message, metadata=[("authorization", "Bearer owner")], timeout=PATIENCE)
                    if method.streams:
                        list(answer)
                except grpc.RpcError as error:
                    refused = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)
                    assert error.code() not in refused, (place, number, error)
                tried += 1
                try:
                    body = json.dumps(json_format.MessageToDict(message))
                except json_format.SerializeToJsonError:
                    continue  # A time that JSON cannot express.
                rest.request("POST", f"/v1/{DOCUMENTS}:{VERBS[name]}", body)
                reply = rest.getresponse()
                reply.read()
                assert reply.status < 500 or reply.status in (501, 504), (place, number, reply.status)
    rest.close()
    assert server.process.poll() is None
    assert tried > 0


TIMEOUTS = ["99999999H", "99999999n", "0S", "18446744073709551615H", "-1S", "H", "9223372036854775807n"]


@pytest.mark.parametrize("text", TIMEOUTS)
def test_every_deadline(server: Program, text: str) -> None:
    """gRPC's own field; the channel would check a timeout that it sets itself."""
    method = METHODS["GetDocument"]
    with grpc.insecure_channel(server.address) as channel:
        stub = channel.unary_unary(method.path, request_serializer=method.request.SerializeToString)
        with pytest.raises(grpc.RpcError):
            stub(parse(method, BODIES["GetDocument"]), metadata=[("grpc-timeout", text)], timeout=5)
    assert server.process.poll() is None


@pytest.mark.parametrize("number", ["9223372036854775807", "-9223372036854775808", "99999999999999999999", "1e999", "-1", "x"])
@pytest.mark.parametrize(
    "target",
    [
        "/a.json?orderBy=%22$key%22&limitToFirst={}",
        "/a.json?orderBy=%22$key%22&limitToLast={}",
        "/a.json?orderBy=%22$value%22&startAt={}",
        "/a.json?timeout={}ms",
        "/.lp?start=t&ser={0}&cb={0}&v=5",
        "/.lp?id={0}&pw=x&ser={0}",
        f"/v1/{DOCUMENTS}/c?pageSize={{}}",
        f"/v1/projects/p/databases/(default)/operations?pageSize={{}}",
        "/google.firestore.v1.Firestore/Listen/channel?VER=8&RID={0}&AID={0}&SID=x&TYPE=xmlhttp",
        "/google.firestore.v1.Firestore/Listen/channel?VER={0}&RID=rpc&AID={0}&SID=x&CI={0}&TO={0}",
    ],
)
def test_numbers_of_addresses(server: Program, target: str, number: str) -> None:
    assert server.send("GET", target.format(number))[0] < 500
    assert server.process.poll() is None
