"""Firestore's messages and methods on the wire, without a high-level client.

The generated types of google-cloud-firestore declare everything except one member: `Write.verify` (field 5), which the
SDKs send and the public definitions omit. Therefore the descriptors are copied into a separate pool with that member
added; JSON and binary forms then both support it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.cloud.firestore_v1.types import firestore as _public
from google.protobuf import descriptor, descriptor_pb2, descriptor_pool, empty_pb2, json_format, message_factory

PACKAGE = "google.firestore.v1"
SERVICE = f"/{PACKAGE}.Firestore/"


def _copy_file(pool: descriptor_pool.DescriptorPool, file: descriptor.FileDescriptor, done: set[str]) -> None:
    if file.name in done:
        return
    done.add(file.name)
    for dependency in file.dependencies:
        _copy_file(pool, dependency, done)
    proto = descriptor_pb2.FileDescriptorProto.FromString(file.serialized_pb)
    for message in proto.message_type:
        if file.package == PACKAGE and message.name == "Write":
            message.field.add(
                name="verify",
                json_name="verify",
                number=5,
                label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
                type=descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
                oneof_index=0,
            )
    pool.Add(proto)


_pool = descriptor_pool.DescriptorPool()
_copy_file(_pool, _public.CommitRequest.pb().DESCRIPTOR.file, set())


def message_class(name: str) -> Any:
    """The message class `google.firestore.v1.<name>`, with `Write.verify` known."""
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))


@dataclass(frozen=True)
class Method:
    """One method: its request and response classes, and whether the answer is a stream."""

    name: str
    request: Any
    response: Any
    streams: bool

    @property
    def path(self) -> str:
        return SERVICE + self.name


def _method(name: str, response: str | None = None, streams: bool = False) -> Method:
    answer = empty_pb2.Empty if response == "Empty" else message_class(response or f"{name}Response")
    return Method(name, message_class(f"{name}Request"), answer, streams)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        _method("GetDocument", "Document"),
        _method("ListDocuments"),
        _method("CreateDocument", "Document"),
        _method("UpdateDocument", "Document"),
        _method("DeleteDocument", "Empty"),
        _method("BatchGetDocuments", streams=True),
        _method("BeginTransaction"),
        _method("Commit"),
        _method("Rollback", "Empty"),
        _method("RunQuery", streams=True),
        _method("RunAggregationQuery", streams=True),
        _method("PartitionQuery"),
        _method("ListCollectionIds"),
        _method("BatchWrite"),
    )
}


def parse(method: Method, body: dict[str, Any]) -> Any:
    """The request message of a body in proto3 JSON form. Deep values need more than the default depth."""
    return json_format.ParseDict(body, method.request(), max_recursion_depth=400)
