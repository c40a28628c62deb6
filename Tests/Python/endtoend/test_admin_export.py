"""Google's own admin client against ExportDocuments and ImportDocuments, and the emulator's endpoints for both."""

from __future__ import annotations

import json
import resource
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_admin_v1 import FirestoreAdminClient
from google.cloud.firestore_admin_v1.services.firestore_admin.transports import FirestoreAdminGrpcTransport
from google.cloud.firestore_admin_v1.types import OperationState
from google.longrunning import operations_pb2

from endtoend.test_admin import Owner
from support.patience import PATIENCE
from support.program import BINARY, Program, assert_sound

VECTORS = Path(__file__).parents[2] / "Vectors" / "export"
DATABASE = "projects/demo-hearth/databases/(default)"

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY names no program")


class Site:
    """A server with a folder for exports, which may be ended and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.exports = folder / "exports"
        self.channel: grpc.Channel | None = None
        self.start()

    def start(self) -> None:
        self.program = Program(self.folder, "--export-folder", "exports")
        self.channel = grpc.insecure_channel(self.program.address)
        transport = FirestoreAdminGrpcTransport(channel=grpc.intercept_channel(self.channel, Owner()))
        self.admin = FirestoreAdminClient(transport=transport)
        self.db = firestore.Client(
            project="demo-hearth",
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": self.program.address},
        )
        # The client of the documents speaks to the same server, without TLS.
        self.db._emulator_host = self.program.address

    def stop(self, kill: bool = False) -> None:
        if self.channel is not None:
            self.db.close()
            self.channel.close()
            self.channel = None
        if self.program.process.poll() is None:
            self.program.kill() if kill else self.program.terminate()

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        status, content = self.program.send("POST", f"/emulator/v1/projects/demo-hearth{path}", body)
        return status, json.loads(content)

    def documents(self) -> dict[str, Any]:
        """Their names and members, as REST has them."""
        found: dict[str, Any] = {}
        query = {"from": [{"allDescendants": True}], "orderBy": [{"field": {"fieldPath": "__name__"}}]}
        status, content = self.program.send("POST", f"/v1/{DATABASE}/documents:runQuery", {"structuredQuery": query})
        assert status == 200
        for answer in json.loads(content):
            if "document" in answer:
                found[answer["document"]["name"].split("/documents/")[1]] = answer["document"].get("fields", {})
        return found

    def fill(self, count: int, size: int = 0) -> None:
        for first in range(0, count, 200):
            batch = self.db.batch()
            for number in range(first, min(first + 200, count)):
                batch.set(self.db.document(f"c/{number}"), {"n": number, "s": "x" * size})
            batch.commit()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.stop()


def test_an_export_is_imported_again(site: Site) -> None:
    site.fill(450)
    site.db.document("c/0/d/below").set({"x": 1})
    before = site.documents()
    operation = site.admin.export_documents(request={"name": DATABASE, "output_uri_prefix": "all/one"})
    assert operation.metadata.output_uri_prefix == f"file://{site.exports.resolve()}/all/one"
    response = operation.result(timeout=PATIENCE)
    assert response.output_uri_prefix == operation.metadata.output_uri_prefix
    metadata = operation.metadata
    assert metadata.operation_state == OperationState.SUCCESSFUL
    assert metadata.progress_documents.completed_work == metadata.progress_documents.estimated_work == 451
    assert metadata.progress_bytes.completed_work == metadata.progress_bytes.estimated_work > 451
    assert metadata.start_time <= metadata.snapshot_time <= metadata.end_time

    request = {"name": DATABASE, "output_uri_prefix": "groups", "collection_ids": ["d", "none"]}
    assert site.admin.export_documents(request=request).result(timeout=PATIENCE).output_uri_prefix.endswith("/groups")
    assert (site.exports / "groups" / "all_namespaces" / "kind_d" / "output-0").exists()

    deletion = site.admin.bulk_delete_documents(request={"name": DATABASE, "collection_ids": ["c"]})
    deletion.result(timeout=PATIENCE)
    assert deletion.metadata.progress_documents.completed_work == 450
    assert site.documents() == {"c/0/d/below": before["c/0/d/below"]}
    again = site.admin.import_documents(request={"name": DATABASE, "input_uri_prefix": response.output_uri_prefix})
    again.result(timeout=PATIENCE)
    assert again.metadata.operation_state == OperationState.SUCCESSFUL
    assert again.metadata.progress_documents.completed_work == 451
    assert site.documents() == before

    with pytest.raises(exceptions.AlreadyExists):
        site.admin.export_documents(request={"name": DATABASE, "output_uri_prefix": "groups"})
    with pytest.raises(exceptions.InvalidArgument, match="file:///ABSOLUTE"):
        site.admin.export_documents(request={"name": DATABASE, "output_uri_prefix": "gs://bucket"})
    with pytest.raises(exceptions.PermissionDenied):
        site.admin.import_documents(request={"name": DATABASE, "input_uri_prefix": "../.."})
    late = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=5)
    with pytest.raises(exceptions.InvalidArgument, match="future"):
        site.admin.export_documents(request={"name": DATABASE, "snapshot_time": late})
    with pytest.raises(exceptions.FailedPrecondition, match="too old"):
        site.admin.export_documents(request={"name": DATABASE, "snapshot_time": late - timedelta(hours=3)})


def test_operations_of_googles_client(site: Site) -> None:
    site.fill(3)
    operation = site.admin.export_documents(request={"name": DATABASE, "output_uri_prefix": "one"})
    operation.result(timeout=PATIENCE)
    name = operation.operation.name
    listed = site.admin.list_operations(operations_pb2.ListOperationsRequest(name=DATABASE, filter="done=true"))
    assert [one.name for one in listed.operations] == [name]
    site.admin.cancel_operation(operations_pb2.CancelOperationRequest(name=name))
    site.stop()
    site.start()
    assert site.admin.get_operation(operations_pb2.GetOperationRequest(name=name)).done
    site.admin.delete_operation(operations_pb2.DeleteOperationRequest(name=name))
    with pytest.raises(exceptions.NotFound):
        site.admin.get_operation(operations_pb2.GetOperationRequest(name=name))


def test_a_damaged_export_ends_the_operation(site: Site) -> None:
    copy = site.exports / "types"
    shutil.copytree(VECTORS / "types", copy)
    (output,) = copy.rglob("output-0")
    content = bytearray(output.read_bytes())
    content[5000] ^= 1
    output.write_bytes(content)
    operation = site.admin.import_documents(request={"name": DATABASE, "input_uri_prefix": "types"})
    with pytest.raises(exceptions.InvalidArgument, match="output-0 at byte .* checksum differs"):
        operation.result(timeout=PATIENCE)
    assert operation.metadata.operation_state == OperationState.FAILED
    assert site.documents() == {}


def test_an_end_in_the_middle(site: Site, tmp_path: Path) -> None:
    """Killed while it exports: the operation has failed, and nothing that looks whole is there."""
    site.fill(2000, 5000)
    operation = site.admin.export_documents(request={"name": DATABASE, "output_uri_prefix": "one"})
    deadline = time.monotonic() + PATIENCE
    while not list(site.exports.rglob("output-*")) and not (site.exports / "one").exists():
        assert time.monotonic() < deadline
    site.stop(kill=True)
    isWhole = (site.exports / "one").exists()
    site.start()
    assert [path.name for path in site.exports.iterdir()] == (["one"] if isWhole else [])
    found = site.admin.get_operation(operations_pb2.GetOperationRequest(name=operation.operation.name))
    # It may have been whole, and its end not stored yet.
    assert found.done and (isWhole or "restarted" in found.error.message)
    site.stop()
    assert_sound(tmp_path / "hearth-data")


def test_a_full_disk(site: Site) -> None:
    site.fill(400, 20_000)
    # No file may become larger than 4 MB from here on; an operation of the admin API could not be stored.
    resource.prlimit(site.program.process.pid, resource.RLIMIT_FSIZE, (4_000_000, resource.RLIM_INFINITY))
    body = {"database": DATABASE, "export_directory": str(site.exports), "export_name": "one"}
    status, answer = site.post(":export", body)
    assert (status, answer["error"]["status"]) == (429, "RESOURCE_EXHAUSTED"), answer
    assert "Cannot write" in answer["error"]["message"]
    assert list(site.exports.iterdir()) == []


def test_the_endpoints_of_googles_emulator(site: Site, tmp_path: Path) -> None:
    site.fill(5)
    before = site.documents()
    folder = tmp_path / "emulator"
    folder.mkdir()
    body = {"database": DATABASE, "export_directory": str(folder), "export_name": "firestore_export"}
    assert site.post(":export", body) == (200, {})
    assert site.post(":bulkDelete", {"database": DATABASE, "collection_ids": ["c", "c"]}) == (200, {})
    assert site.documents() == {}
    overall = folder / "firestore_export" / "firestore_export.overall_export_metadata"
    for path in (overall, overall.parent):
        assert site.post(":import", {"database": DATABASE, "exportDirectory": str(path)}) == (200, {})
        assert site.documents() == before
    # Again, in the other form: the export is replaced.
    assert site.post("/databases/(default):export", body) == (200, {})
    assert site.post(":export", {"database": DATABASE, "export_directory": str(folder)}) == (200, {})
    assert sorted(path.name.rstrip("0123456789") for path in folder.iterdir()) == [
        "firestore_export",
        "firestore_export_",
    ]

    (folder / "mine").mkdir()
    (folder / "mine" / "file").write_text("x")
    lacks = 'Database name "" lacks "projects" at index 0.'
    for path, sent, code, message in (
        (":export", {"export_directory": str(folder)}, "INVALID_ARGUMENT", lacks),
        ("/databases/(default):import", {"export_directory": str(overall)}, "INVALID_ARGUMENT", lacks),
        (
            ":export",
            {**body, "export_directory": str(folder / "no")},
            "FAILED_PRECONDITION",
            "export_directory must be a directory",
        ),
        (":export", {"database": DATABASE}, "FAILED_PRECONDITION", "export_directory must be a directory"),
        (":export", {**body, "export_name": "mine"}, "FAILED_PRECONDITION", "no export that may be replaced"),
        (":export", {**body, "other": 1}, "INVALID_ARGUMENT", "Payload isn't valid for request."),
        (":export", [], "INVALID_ARGUMENT", "Payload isn't valid for request."),
        (
            ":import",
            {"database": DATABASE, "export_directory": str(folder / "mine")},
            "INVALID_ARGUMENT",
            "Failed to parse overall export metadata file",
        ),
        (
            ":bulkDelete",
            {"database": DATABASE},
            "FAILED_PRECONDITION",
            "collection_ids and namespace_ids cannot both be empty.",
        ),
    ):
        status, answer = site.post(path, sent)
        assert (status, answer["error"]["status"]) == (400, code), (path, sent, answer)
        assert message in answer["error"]["message"]
    (output,) = overall.parent.rglob("output-0")
    content = bytearray(output.read_bytes())
    content[10] ^= 1
    output.write_bytes(content)
    status, answer = site.post(":import", {"database": DATABASE, "export_directory": str(overall)})
    assert (status, answer["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert answer["error"]["message"].startswith("Checksum doesn't validate.")
