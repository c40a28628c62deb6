"""Random reads other than queries: single documents, several documents, lists of documents and of collections."""

from __future__ import annotations

from random import Random

from .request import Json, Request, reference
from .world import World, quoted


class Reads:
    """Draws reading requests for one episode."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng: Random = world.rng

    def any(self, index: int) -> Request:
        return self._rng.choices(
            [self.get, self.batch_get, self.list_documents, self.collection_ids], [30, 25, 30, 15]
        )[0](index)

    def get(self, index: int) -> Request:
        body: Json = {"name": self._world.name()}
        self._mask(body)
        self.at_time(body)
        return Request(index, "GetDocument", "GetDocument", body)

    def batch_get(self, index: int) -> Request:
        world, rng = self._world, self._rng
        names = [world.name() for _ in range(rng.choices([0, 1, 3, 6], [3, 20, 50, 27])[0])]
        if rng.random() < 0.2:
            names.append(world.name("c/never"))
        body: Json = {"database": world.database, "documents": names}
        self._mask(body)
        self.at_time(body)
        return Request(index, "BatchGetDocuments", "BatchGetDocuments", body)

    def list_documents(self, index: int) -> Request:
        world, rng = self._world, self._rng
        body: Json = {"parent": world.parent(), "collectionId": world.collection() if rng.random() < 0.97 else ""}
        if rng.random() < 0.3:
            body["pageSize"] = rng.choice([0, 1, 2, 3, 20, 100, 200])
        if rng.random() < 0.3:
            body["showMissing"] = True
        elif rng.random() < 0.3:
            body["orderBy"] = self._order_text()
        self._mask(body, 0.25)
        self.at_time(body, 0.1)
        return Request(index, "ListDocuments", "ListDocuments", body)

    def pages(self, index: int) -> list[Request]:
        """A list in small pages. A later page is omitted where the earlier answer had no token."""
        first = self.list_documents(index)
        first.body["pageSize"] = self._rng.choice([1, 2, 3])
        made = [first]
        for offset in range(1, self._rng.randint(2, 4)):
            body = {**first.body, "pageToken": reference(index + offset - 1, "nextPageToken")}
            made.append(Request(index + offset, "ListDocuments (next page)", "ListDocuments", body))
        return made

    def collection_ids(self, index: int) -> Request:
        world, rng = self._world, self._rng
        body: Json = {"parent": world.root if rng.random() < 0.5 else world.name()}
        if rng.random() < 0.3:
            body["pageSize"] = rng.choice([0, 1, 2, 5])
        self.at_time(body, 0.1)
        return Request(index, "ListCollectionIds", "ListCollectionIds", body)

    def collection_pages(self, index: int) -> list[Request]:
        first = self.collection_ids(index)
        first.body["pageSize"] = 1
        body = {**first.body, "pageToken": reference(index, "nextPageToken")}
        return [first, Request(index + 1, "ListCollectionIds (next page)", "ListCollectionIds", body)]

    def at_time(self, body: Json, likelihood: float = 0.08) -> None:
        """Sometimes reads at the time of an earlier commit or just around it."""
        if self._rng.random() < likelihood:
            time = self._world.read_time()
            if time is not None:
                if self._rng.random() < 0.15:
                    time["plusNanos"] = -1000
                body["readTime"] = time

    def _mask(self, body: Json, likelihood: float = 0.2) -> None:
        if self._rng.random() < likelihood:
            paths = [self._world.field_path() for _ in range(self._rng.randint(0, 3))]
            if self._rng.random() < 0.05:
                paths.append("__name__")
            body["mask"] = {"fieldPaths": paths}

    def _order_text(self) -> str:
        rng = self._rng
        parts = [
            quoted(rng.choice(["a", "b", "n", "m", "t"])) + rng.choice(["", " asc", " desc", " ASC"])
            for _ in range(rng.randint(1, 2))
        ]
        if rng.random() < 0.2:
            parts.append("__name__")
        return rng.choice([", ", ",", " , "]).join(parts)
