"""Google's own admin client against the admin services: indexes, fields, databases, operations."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore_admin_v1 import FirestoreAdminClient
from google.cloud.firestore_admin_v1.services.firestore_admin.transports import FirestoreAdminGrpcTransport
from google.cloud.firestore_admin_v1.types import Database, Field, Index
from google.protobuf import field_mask_pb2

from endtoend.rest import Rest
from support.patience import PATIENCE

pytestmark = pytest.mark.emulator_differs("it has no admin services")

ASCENDING = Index.IndexField.Order.ASCENDING
DESCENDING = Index.IndexField.Order.DESCENDING


class Owner(grpc.UnaryUnaryClientInterceptor):
    """An administrator's credential with each call: without one, calls depend on the rules of all other tests."""

    def intercept_unary_unary(self, continuation: Any, details: grpc.ClientCallDetails, request: Any) -> Any:
        metadata = [*(details.metadata or ()), ("authorization", "Bearer owner")]
        return continuation(details._replace(metadata=metadata), request)


@pytest.fixture
def admin(channel: grpc.Channel) -> FirestoreAdminClient:
    transport = FirestoreAdminGrpcTransport(channel=grpc.intercept_channel(channel, Owner()))
    return FirestoreAdminClient(transport=transport)


@pytest.fixture
def group(project: str) -> Callable[[str], str]:
    return lambda name: f"projects/{project}/databases/(default)/collectionGroups/{name}"


def index(*fields: tuple[str, Index.IndexField.Order], scope: str = "COLLECTION") -> Index:
    return Index(
        query_scope=Index.QueryScope[scope], fields=[Index.IndexField(field_path=path, order=o) for path, o in fields]
    )


class TestIndexes:
    def test_life_of_an_index(
        self, admin: FirestoreAdminClient, group: Callable[[str], str], db: firestore.Client
    ) -> None:
        batch = db.batch()
        for n in range(100):
            batch.set(db.collection("c").document(), {"a": n % 3, "b": n})
        batch.commit()
        wanted = index(("a", ASCENDING), ("b", DESCENDING))
        operation = admin.create_index(parent=group("c"), index=wanted)
        assert operation.metadata.index.startswith(group("c") + "/indexes/")
        made = operation.result(timeout=PATIENCE)
        assert made.state == Index.State.READY
        assert [field.field_path for field in made.fields] == ["a", "b", "__name__"]
        assert admin.get_index(name=made.name) == made
        assert [found.name for found in admin.list_indexes(parent=group("-"))] == [made.name]
        with pytest.raises(exceptions.AlreadyExists, match="index already exists"):
            admin.create_index(parent=group("c"), index=wanted)
        query = db.collection("c").where(filter=firestore.FieldFilter("a", "==", 1)).order_by("b", "DESCENDING").limit(3)
        assert [found.get("b") for found in query.get()] == [97, 94, 91]
        admin.delete_index(name=made.name)
        with pytest.raises(exceptions.NotFound):
            admin.get_index(name=made.name)
        assert [found.get("b") for found in query.get()] == [97, 94, 91]

    def test_an_index_that_is_not_necessary(self, admin: FirestoreAdminClient, group: Callable[[str], str]) -> None:
        with pytest.raises(exceptions.InvalidArgument, match="this index is not necessary"):
            admin.create_index(parent=group("c"), index=index(("a", ASCENDING)))

    def test_the_definition_that_an_error_names_can_be_made(
        self, admin: FirestoreAdminClient, group: Callable[[str], str]
    ) -> None:
        many = [("f%d" % n, ASCENDING) for n in range(101)]
        with pytest.raises(exceptions.InvalidArgument, match="at most 100 fields"):
            admin.create_index(parent=group("c"), index=index(*many))
        made = admin.create_index(parent=group("c"), index=index(*many[:100])).result(timeout=PATIENCE)
        assert len(made.fields) == 101

    def test_pages(self, admin: FirestoreAdminClient, group: Callable[[str], str]) -> None:
        for n in range(5):
            admin.create_index(parent=group("c"), index=index(("a", ASCENDING), (f"f{n}", ASCENDING))).result(timeout=PATIENCE)
        pages = list(admin.list_indexes(request={"parent": group("c"), "page_size": 2}).pages)
        assert [len(page.indexes) for page in pages] == [2, 2, 1]


class TestFields:
    def test_exemption(
        self, admin: FirestoreAdminClient, group: Callable[[str], str], db: firestore.Client
    ) -> None:
        db.document("c/d").set({"body": "x", "a": 1})
        name = group("c") + "/fields/body"
        inherited = admin.get_field(name=name)
        assert inherited.index_config.uses_ancestor_config
        assert inherited.index_config.ancestor_field == group("__default__") + "/fields/*"
        mask = field_mask_pb2.FieldMask(paths=["index_config"])
        request = {"field": Field(name=name, index_config=Field.IndexConfig()), "update_mask": mask}
        changed = admin.update_field(request=request).result(timeout=PATIENCE)
        assert not changed.index_config.uses_ancestor_config
        assert not changed.index_config.indexes
        listed = admin.list_fields(
            request={"parent": group("-"), "filter": "indexConfig.usesAncestorConfig:false OR ttlConfig:*"}
        )
        assert [field.name for field in listed] == [group("__default__") + "/fields/*", name]
        query = db.collection("c").where(filter=firestore.FieldFilter("body", "==", "x"))
        assert [found.id for found in query.get()] == ["d"]
        reset = admin.update_field(request={"field": Field(name=name), "update_mask": mask}).result(timeout=PATIENCE)
        assert reset.index_config.uses_ancestor_config

    def test_group_wide_index(
        self, admin: FirestoreAdminClient, group: Callable[[str], str], db: firestore.Client
    ) -> None:
        db.document("c/d").set({"a": 2})
        db.document("x/y/c/e").set({"a": 1})
        name = group("c") + "/fields/a"
        config = Field.IndexConfig(indexes=[index(("a", ASCENDING), scope="COLLECTION_GROUP")])
        field = admin.update_field(field=Field(name=name, index_config=config)).result(timeout=PATIENCE)
        assert [found.state for found in field.index_config.indexes] == [Index.State.READY]
        assert [found.id for found in db.collection_group("c").order_by("a").get()] == ["e", "d"]


class TestDatabases:
    def test_life_of_a_database(self, admin: FirestoreAdminClient, project: str) -> None:
        parent = f"projects/{project}"
        wanted = Database(location_id="eur3", type_=Database.DatabaseType.FIRESTORE_NATIVE)
        made = admin.create_database(parent=parent, database=wanted, database_id="blue").result(timeout=PATIENCE)
        assert made.name == f"{parent}/databases/blue"
        assert made.location_id == "eur3"
        client = firestore.Client(project=project, database="blue")
        client.document("c/d").set({"a": 1})
        assert [found.name for found in admin.list_databases(parent=parent).databases] == [made.name]
        with pytest.raises(exceptions.AlreadyExists):
            admin.create_database(parent=parent, database=wanted, database_id="blue")
        protect = Database(
            name=made.name, delete_protection_state=Database.DeleteProtectionState.DELETE_PROTECTION_ENABLED
        )
        mask = field_mask_pb2.FieldMask(paths=["delete_protection_state"])
        admin.update_database(database=protect, update_mask=mask).result(timeout=PATIENCE)
        with pytest.raises(exceptions.FailedPrecondition, match="delete protection"):
            admin.delete_database(name=made.name)
        protect.delete_protection_state = Database.DeleteProtectionState.DELETE_PROTECTION_DISABLED
        admin.update_database(database=protect, update_mask=mask).result(timeout=PATIENCE)
        admin.delete_database(name=made.name).result(timeout=PATIENCE)
        with pytest.raises(exceptions.NotFound):
            admin.get_database(name=made.name)
        assert not client.document("c/d").get().exists

    def test_point_in_time_recovery(self, admin: FirestoreAdminClient, project: str, db: firestore.Client) -> None:
        enablement = Database.PointInTimeRecoveryEnablement
        mask = field_mask_pb2.FieldMask(paths=["point_in_time_recovery_enablement"])
        name = f"projects/{project}/databases/(default)"
        document = db.document("c/d")
        then = document.set({"n": 1}).update_time
        document.set({"n": 2})

        def switch(state: Database.PointInTimeRecoveryEnablement) -> Database:
            wanted = Database(name=name, point_in_time_recovery_enablement=state)
            changed = admin.update_database(database=wanted, update_mask=mask).result(timeout=PATIENCE)
            assert changed.point_in_time_recovery_enablement == state
            assert admin.get_database(name=name).version_retention_period == changed.version_retention_period
            return changed

        assert admin.get_database(name=name).version_retention_period == datetime.timedelta(hours=1)
        on = switch(enablement.POINT_IN_TIME_RECOVERY_ENABLED)
        assert on.version_retention_period == datetime.timedelta(days=7)
        # There is no history before the first commit.
        assert on.earliest_version_time == then
        assert document.get(read_time=then).to_dict() == {"n": 1}
        assert [found.get("n") for found in db.collection("c").stream(read_time=then)] == [1]
        assert db.collection("c").sum("n").get(read_time=then)[0][0].value == 1
        api = db._firestore_api
        begun = api.begin_transaction(request={"database": name, "options": {"read_only": {"read_time": then}}})
        read = api.get_document(request={"name": f"{name}/documents/c/d", "transaction": begun.transaction})
        assert read.fields["n"].integer_value == 1
        # The window begins an hour before it was switched on.
        minute = datetime.datetime.now(datetime.UTC).replace(second=0, microsecond=0)
        with pytest.raises(exceptions.FailedPrecondition, match="too old"):
            document.get(read_time=minute - datetime.timedelta(hours=2))
        off = switch(enablement.POINT_IN_TIME_RECOVERY_DISABLED)
        assert off.version_retention_period == datetime.timedelta(hours=1)
        made = admin.create_database(
            parent=f"projects/{project}",
            database=Database(point_in_time_recovery_enablement=enablement.POINT_IN_TIME_RECOVERY_ENABLED),
            database_id="kept",
        ).result(timeout=PATIENCE)
        assert made.version_retention_period == datetime.timedelta(days=7)
        assert made.earliest_version_time == made.create_time

    def test_bulk_deletion(self, admin: FirestoreAdminClient, project: str, db: firestore.Client) -> None:
        batch = db.batch()
        for n in range(300):
            batch.set(db.document(f"c/{n}"), {"n": n})
        batch.set(db.document("other/kept"), {})
        batch.commit()
        name = f"projects/{project}/databases/(default)"
        admin.bulk_delete_documents(request={"name": name, "collection_ids": ["c"]}).result(timeout=PATIENCE)
        assert db.collection("c").count().get()[0][0].value == 0
        assert db.document("other/kept").get().exists

    def test_what_is_absent_is_said(self, admin: FirestoreAdminClient, project: str) -> None:
        name = f"projects/{project}/databases/(default)"
        with pytest.raises(exceptions.MethodNotImplemented):
            admin.list_backups(parent=f"projects/{project}/locations/local")
        with pytest.raises(exceptions.FailedPrecondition, match="--export-folder"):
            admin.export_documents(request={"name": name, "output_uri_prefix": "gs://x"})


class TestRest:
    """As the Firebase tools call it when they deploy."""

    def test_deploy_of_indexes(self, rest: Rest) -> None:
        group = f"/v1/projects/{rest.project}/databases/(default)/collectionGroups"
        listed = rest.send("GET", f"{group}/-/indexes")
        assert (listed.status, listed.json) == (200, {})
        fields = rest.send("GET", f"{group}/-/fields?filter=indexConfig.usesAncestorConfig=false%20OR%20ttlConfig:*")
        assert [field["name"].split("/")[-3:] for field in fields.json["fields"]] == [["__default__", "fields", "*"]]
        body = {
            "queryScope": "COLLECTION",
            "fields": [{"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "t", "arrayConfig": "CONTAINS"}],
        }
        made = rest.send("POST", f"{group}/c/indexes", body)
        assert made.status == 200
        assert made.json["metadata"]["@type"].endswith("IndexOperationMetadata")
        again = rest.send("POST", f"{group}/c/indexes", body)
        assert (again.status, again.json["error"]["message"]) == (409, "index already exists")
        override = {"indexConfig": {"indexes": [{"queryScope": "COLLECTION", "fields": [{"fieldPath": "a", "order": "ASCENDING"}]}]}}
        changed = rest.send("PATCH", f"{group}/c/fields/a?updateMask=indexConfig", override)
        assert changed.status == 200
        deadline = time.monotonic() + PATIENCE
        while not rest.send("GET", "/v1/" + changed.json["name"]).json.get("done"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        wrong = rest.send("PATCH", f"{group}/c/fields/a?updateMask=name", override)
        assert wrong.status == 400
