"""Random writes: commits, batch writes, and the three methods that write one document."""

from __future__ import annotations

from random import Random

from .request import Json, Request
from .world import World, quoted


class Writes:
    """Draws writing requests for one episode."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng: Random = world.rng

    def any(self, index: int) -> Request:
        return self._rng.choices(
            [self.commit, self.batch_write, self.create, self.update, self.delete], [58, 10, 8, 14, 10]
        )[0](index)

    def seed(self, index: int) -> Request:
        """Fills the world without conditions, so that later requests find documents."""
        world = self._world
        paths = [path for path in world.paths if self._rng.random() < 0.85]
        writes = [{"update": {"name": world.name(path), "fields": world.fields()}} for path in paths]
        for place, path in enumerate(paths):
            world.noted(path, index, "writeResults", place, "updateTime")
        world.commits.append((index, "commitTime"))
        return Request(index, "Commit (seed)", "Commit", {"database": world.database, "writes": writes})

    def crowd(self, index: int) -> Request:
        """Many small documents in one collection, for windows and cursors."""
        world = self._world
        count = self._rng.randint(35, 200)
        writes = []
        for n in range(count):
            fields = {name: world.values.dense() for name in ("a", "b") if self._rng.random() < 0.9}
            fields["n"] = world.values.plain_number() if self._rng.random() < 0.8 else world.values.number()
            if self._rng.random() < 0.4:
                fields["t"] = world.values.array()
            if self._rng.random() < 0.3:
                fields["v"] = world.values.vector()
            writes.append({"update": {"name": world.name(f"c/k{n:03}"), "fields": fields}})
        world.commits.append((index, "commitTime"))
        return Request(index, "Commit (crowd)", "Commit", {"database": world.database, "writes": writes})

    def commit(self, index: int, transaction: Json | None = None) -> Request:
        world = self._world
        count = self._rng.choices([0, 1, 2, 3, 5], [2, 55, 20, 15, 8])[0]
        paths = self._rng.choices(world.paths, k=count)
        writes = self._several(paths, index, "writeResults")
        body: Json = {"database": world.database, "writes": writes}
        if transaction is not None:
            body["transaction"] = transaction
        world.commits.append((index, "commitTime"))
        return Request(index, "Commit in transaction" if transaction else "Commit", "Commit", body)

    def batch_write(self, index: int) -> Request:
        world = self._world
        count = self._rng.randint(1, 4)
        # The same document twice makes the whole call fail; rarely wanted.
        twice = self._rng.random() < 0.05
        paths = self._rng.choices(world.paths, k=count) if twice else self._rng.sample(world.paths, count)
        writes = self._several(paths, index, "writeResults")
        return Request(index, "BatchWrite", "BatchWrite", {"database": world.database, "writes": writes})

    def create(self, index: int) -> Request:
        world = self._world
        path = world.path()
        parent, collection, document_id = self._split(path)
        body: Json = {
            "parent": parent,
            "collectionId": collection,
            "documentId": document_id,
            "document": {"fields": world.fields()},
        }
        self._mask_of_answer(body)
        world.noted(path, index, "updateTime")
        return Request(index, "CreateDocument", "CreateDocument", body)

    def update(self, index: int) -> Request:
        world = self._world
        path = world.path()
        fields = world.fields()
        body: Json = {"document": {"name": world.name(path), "fields": fields}}
        if self._rng.random() < 0.6:
            body["updateMask"] = {"fieldPaths": self._mask_for(fields)}
        self._mask_of_answer(body)
        self._precondition(body, path)
        world.noted(path, index, "updateTime")
        return Request(index, "UpdateDocument", "UpdateDocument", body)

    def delete(self, index: int) -> Request:
        path = self._world.path()
        body: Json = {"name": self._world.name(path)}
        self._precondition(body, path)
        return Request(index, "DeleteDocument", "DeleteDocument", body)

    # Parts

    def _several(self, paths: list[str], index: int, results: str) -> list[Json]:
        writes = []
        for place, path in enumerate(paths):
            writes.append(self.write(path))
            self._world.noted(path, index, results, place, "updateTime")
        return writes

    def write(self, path: str) -> Json:
        """One write of a random kind to the document at `path`."""
        world, rng = self._world, self._rng
        name = world.name(path)
        write: Json
        match rng.choices(["set", "merge", "transforms", "legacy", "delete", "verify"], [34, 24, 22, 5, 11, 4])[0]:
            case "set":
                write = {"update": {"name": name, "fields": world.fields()}}
                if rng.random() < 0.15:
                    write["updateTransforms"] = self.transforms()
            case "merge":
                fields = world.fields()
                write = {
                    "update": {"name": name, "fields": fields},
                    "updateMask": {"fieldPaths": self._mask_for(fields)},
                }
                if rng.random() < 0.2:
                    write["updateTransforms"] = self.transforms()
            case "transforms":
                write = {"update": {"name": name}, "updateMask": {}, "updateTransforms": self.transforms()}
            case "legacy":
                write = {"transform": {"document": name, "fieldTransforms": self.transforms()}}
            case "delete":
                write = {"delete": name}
            case _:
                write = {"verify": name}
                self._precondition(write, path, 1.0)
                return write
        self._precondition(write, path)
        return write

    def transforms(self) -> list[Json]:
        return [self.transform() for _ in range(self._rng.choices([1, 2, 3], [70, 22, 8])[0])]

    def transform(self) -> Json:
        world, rng = self._world, self._rng
        match rng.randrange(6):
            case 0:
                return {"fieldPath": self._path_near("ts"), "setToServerValue": "REQUEST_TIME"}
            case 1:
                return {"fieldPath": self._path_near("n"), "increment": world.values.number()}
            case 2:
                return {"fieldPath": self._path_near("n"), "maximum": world.values.number()}
            case 3:
                return {"fieldPath": self._path_near("n"), "minimum": world.values.number()}
            case 4:
                elements = world.values.array(lengths=(0, 3))["arrayValue"]
                return {"fieldPath": self._path_near("t"), "appendMissingElements": elements}
            case _:
                elements = world.values.array(lengths=(0, 3))["arrayValue"]
                return {"fieldPath": self._path_near("t"), "removeAllFromArray": elements}

    def _path_near(self, field: str) -> str:
        """Mostly the field made for this transform, otherwise any path."""
        return quoted(field) if self._rng.random() < 0.6 else self._world.field_path()

    def _mask_for(self, fields: Json) -> list[str]:
        """Some of the written fields, some that exist only in the stored document (deletes), some nested."""
        rng = self._rng
        mask = [quoted(name) for name in fields if rng.random() < 0.8]
        mask += [self._world.field_path() for _ in range(rng.choices([0, 1, 2], [50, 35, 15])[0])]
        rng.shuffle(mask)
        return mask

    def _mask_of_answer(self, body: Json) -> None:
        if self._rng.random() < 0.2:
            body["mask"] = {"fieldPaths": [self._world.field_path() for _ in range(self._rng.randint(0, 3))]}

    def _precondition(self, body: Json, path: str, likelihood: float = 0.22) -> None:
        rng = self._rng
        if rng.random() >= likelihood:
            return
        match rng.choices(["exists", "new", "time", "old", "future", "empty"], [30, 20, 35, 8, 4, 3])[0]:
            case "exists":
                body["currentDocument"] = {"exists": True}
            case "new":
                body["currentDocument"] = {"exists": False}
            case "time":
                body["currentDocument"] = {"updateTime": self._world.update_time(path)}
            case "old":
                body["currentDocument"] = {"updateTime": "2020-01-01T00:00:00.000001Z"}
            case "future":
                body["currentDocument"] = {"updateTime": "2100-01-01T00:00:00Z"}
            case _:
                body["currentDocument"] = {}

    def _split(self, path: str) -> tuple[str, str, str]:
        """Parent, collection id and document id of a path."""
        *above, collection, document_id = path.split("/")
        return "/".join([self._world.root, *above]), collection, document_id
