"""The asynchronous client and the Admin SDK: other code over the same calls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import firebase_admin
import pytest
from firebase_admin import credentials
from firebase_admin import firestore as admin_firestore
from google.auth.credentials import AnonymousCredentials, Credentials
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter


class TestAsync:
    async def test_documents_and_queries(self, async_db: firestore.AsyncClient) -> None:
        c = async_db.collection("c")
        await asyncio.gather(*[c.document(str(n)).set({"n": n}) for n in range(20)])
        assert (await c.document("7").get()).to_dict() == {"n": 7}
        query = c.where(filter=FieldFilter("n", ">", 15)).order_by("n", direction="DESCENDING")
        assert [s.get("n") async for s in query.stream()] == [19, 18, 17, 16]
        assert (await c.count().get())[0][0].value == 20
        found = {s.id: s.exists async for s in async_db.get_all([c.document("1"), c.document("none")])}
        assert found == {"1": True, "none": False}

    async def test_transaction(self, async_db: firestore.AsyncClient) -> None:
        reference = async_db.document("c/a")
        await reference.set({"n": 0})

        @firestore.async_transactional
        async def increment(transaction: firestore.AsyncTransaction) -> None:
            snapshot = await reference.get(transaction=transaction)
            transaction.update(reference, {"n": snapshot.get("n") + 1})

        for _ in range(3):
            await increment(async_db.transaction())
        assert (await reference.get()).get("n") == 3

    async def test_many_calls_at_once(self, async_db: firestore.AsyncClient) -> None:
        """Over a hundred streams share one connection."""
        await async_db.document("c/a").set({"text": "x" * 100_000})
        snapshots = await asyncio.gather(*[async_db.document("c/a").get() for _ in range(150)])
        assert {len(s.get("text")) for s in snapshots} == {100_000}


class _Anonymous(credentials.Base):
    def get_credential(self) -> Credentials:
        return AnonymousCredentials()


class TestAdmin:
    @pytest.fixture
    def admin(self, project: str) -> Iterator[firestore.Client]:
        app = firebase_admin.initialize_app(_Anonymous(), {"projectId": project}, name=project)
        yield admin_firestore.client(app)
        firebase_admin.delete_app(app)

    def test_documents_and_queries(self, admin: firestore.Client) -> None:
        _, reference = admin.collection("c").add({"n": 1, "at": admin_firestore.SERVER_TIMESTAMP})
        reference.update({"n": admin_firestore.Increment(4), "at": admin_firestore.DELETE_FIELD})
        assert [s.to_dict() for s in admin.collection("c").stream()] == [{"n": 5}]
        reference.delete()
        assert list(admin.collection("c").stream()) == []

    def test_another_database(self, admin: firestore.Client, project: str) -> None:
        named = admin_firestore.client(firebase_admin.get_app(project), "named-db")
        named.document("c/a").set({})
        assert not admin.document("c/a").get().exists
