"""Random structured queries and aggregations."""

from __future__ import annotations

from random import Random

from .reads import Reads
from .request import Json, Request
from .shapes import never_satisfied
from .world import World, quoted

COMPARISONS = ["LESS_THAN", "LESS_THAN_OR_EQUAL", "GREATER_THAN", "GREATER_THAN_OR_EQUAL", "EQUAL", "NOT_EQUAL"]
LISTS = ["IN", "NOT_IN", "ARRAY_CONTAINS_ANY"]
UNARY = ["IS_NAN", "IS_NULL", "IS_NOT_NAN", "IS_NOT_NULL"]
DIRECTIONS = ["ASCENDING", "DESCENDING", "DIRECTION_UNSPECIFIED"]
MEASURES = ["EUCLIDEAN", "COSINE", "DOT_PRODUCT"]


class Queries:
    """Draws queries for one episode. Most are valid; invalid parts are rare."""

    def __init__(self, world: World, reads: Reads) -> None:
        self._world = world
        self._reads = reads
        self._rng: Random = world.rng

    def any(self, index: int) -> Request:
        return self._rng.choices([self.run, self.aggregate, self.nearest], [76, 18, 6])[0](index)

    def run(self, index: int) -> Request:
        query = self.query()
        body: Json = {"parent": self._parent_for(query), "structuredQuery": query}
        self._reads.at_time(body, 0.06)
        return Request(index, "RunQuery", "RunQuery", body)

    def _parent_for(self, query: Json) -> str:
        # The emulator rejects a collection group below a document; a few requests are enough to detect a change.
        group = any(source.get("allDescendants") and source.get("collectionId") for source in query["from"])
        return self._world.root if group and self._rng.random() < 0.95 else self._world.parent()

    def query(self, shape: str | None = None) -> Json:
        rng = self._rng
        query: Json = {}
        shape = shape or rng.choices(["collection", "group", "kindless"], [80, 14, 6])[0]
        if shape == "kindless":
            query["from"] = rng.choice([[{"allDescendants": True}], [{"collectionId": ""}], []])
            return self._kindless(query)
        query["from"] = [{"collectionId": self._world.collection()}]
        if shape == "group":
            query["from"][0]["allDescendants"] = True
        if rng.random() < 0.7:
            query["where"] = self.filter()
        if rng.random() < 0.45:
            query["orderBy"] = self.orders()
        self._cursors(query)
        # The emulator has another order for some of these, and a window on it would contain other documents.
        if not never_satisfied({"structuredQuery": query}):
            self._window(query)
        if rng.random() < 0.15:
            query["select"] = self._projection()
            # Without the values of the order a known difference of order cannot be distinguished from an error.
            ordered = [order["field"] for order in query.get("orderBy", [])]
            query["select"]["fields"] += [field for field in ordered if field not in query["select"]["fields"]]
        return query

    def _kindless(self, query: Json) -> Json:
        rng = self._rng
        if rng.random() < 0.4:
            query["where"] = self.field_filter("__name__")
        if rng.random() < 0.4:
            query["orderBy"] = [{"field": {"fieldPath": "__name__"}, "direction": "ASCENDING"}]
        self._cursors(query)
        self._window(query)
        return query

    # Filters

    def filter(self, depth: int = 0) -> Json:
        rng = self._rng
        roll = rng.random()
        if depth < 3 and roll < (0.35 if depth == 0 else 0.2):
            operator = rng.choice(["AND", "AND", "OR"])
            members = [self.filter(depth + 1) for _ in range(rng.choices([0, 1, 2, 3, 4], [1, 6, 55, 28, 10])[0])]
            return {"compositeFilter": {"op": operator, "filters": members}}
        if roll < 0.5:
            # A query may have only one negation; negations are rare, so that few queries have two.
            unary = rng.choices(UNARY, [35, 35, 15, 15])[0]
            return {"unaryFilter": {"op": unary, "field": {"fieldPath": self._filter_path()}}}
        return self.field_filter()

    def _filter_path(self) -> str:
        roll = self._rng.random()
        if roll < 0.55:
            return self._rng.choice(["a", "b", "n"])
        return "__name__" if roll > 0.97 else self._world.field_path()

    def field_filter(self, path: str | None = None) -> Json:
        rng = self._rng
        operator = rng.choices(["compare", "IN", "NOT_IN", "ARRAY_CONTAINS", "ARRAY_CONTAINS_ANY"], [62, 15, 3, 12, 8])[
            0
        ]
        if operator == "compare":
            operator = rng.choices(COMPARISONS, [15, 15, 15, 15, 33, 7])[0]
        if path is None:
            path = rng.choice(["t", "t", "a"]) if operator.startswith("ARRAY") else self._filter_path()
        if operator in LISTS:
            count = rng.choices([0, 1, 2, 3, 10, 11], [2, 20, 45, 30, 2, 1])[0]
            values = [self._operand(path) for _ in range(count)]
            value: Json = {"arrayValue": {"values": values}}
        else:
            value = self._operand(path)
        return {"fieldFilter": {"field": {"fieldPath": path}, "op": operator, "value": value}}

    def _operand(self, path: str) -> Json:
        if path == "__name__":
            return self._name_value()
        if path == "n":
            return self._world.values.number()
        if path == "m" and self._rng.random() < 0.6:
            return self._world.values.map()
        return self._world.values.dense() if self._rng.random() < 0.75 else self._world.values.any()

    def _name_value(self) -> Json:
        path = self._world.path() if self._rng.random() < 0.9 else "c/b0"
        return {"referenceValue": self._world.name(path)}

    # Order and window

    def orders(self) -> list[Json]:
        rng = self._rng
        if rng.random() < 0.08:
            return [{"field": {"fieldPath": "__name__"}, "direction": rng.choice(DIRECTIONS)}]
        paths = [
            rng.choice(["a", "b", "n", "m", "t", "v"]) if rng.random() < 0.85 else self._world.field_path()
            for _ in range(rng.choices([1, 2, 3], [60, 30, 10])[0])
        ]
        if rng.random() < 0.03:
            paths.append(paths[0])
        paths = paths if rng.random() < 0.02 else list(dict.fromkeys(paths))
        main = rng.choice(DIRECTIONS)
        orders = [
            {"field": {"fieldPath": path}, "direction": main if rng.random() < 0.7 else rng.choice(DIRECTIONS)}
            for path in paths
        ]
        if rng.random() < 0.3:
            # The emulator supports the name only in ascending order where no other order precedes it.
            direction = "ASCENDING" if rng.random() < 0.5 else rng.choice(DIRECTIONS)
            orders.append({"field": {"fieldPath": "__name__"}, "direction": direction})
        return orders

    def _cursors(self, query: Json) -> None:
        rng = self._rng
        orders = query.get("orderBy", [])
        for side in ("startAt", "endAt"):
            if rng.random() < (0.25 if orders else 0.04):
                # Values correspond to the orders; fewer are a prefix, and one too many is an error.
                count = rng.choices([len(orders), rng.randint(0, len(orders)), len(orders) + 1], [75, 22, 3])[0]
                paths = [order["field"]["fieldPath"] for order in orders] + ["__name__"]
                cursor: Json = {"values": [self._cursor_value(path) for path in paths[:count]]}
                if rng.random() < 0.5:
                    cursor["before"] = True
                query[side] = cursor

    def _cursor_value(self, path: str) -> Json:
        if path == "__name__":
            return self._name_value()
        return self._operand(path) if self._rng.random() < 0.8 else self._world.values.any()

    def _window(self, query: Json) -> None:
        rng = self._rng
        if rng.random() < 0.25:
            query["limit"] = rng.choice([0, 1, 1, 2, 3, 5, 10, 40, 100])
        if rng.random() < 0.15:
            query["offset"] = rng.choice([0, 1, 2, 4, 20, 50])

    def _projection(self) -> Json:
        paths = [self._world.field_path() for _ in range(self._rng.randint(1, 3))]
        if self._rng.random() < 0.3:
            paths = ["__name__"] if self._rng.random() < 0.5 else [*paths, "__name__"]
        return {"fields": [{"fieldPath": path} for path in paths]}

    # Aggregations and vectors

    def aggregate(self, index: int) -> Request:
        rng = self._rng
        query = self.query(rng.choices(["collection", "group"], [85, 15])[0])
        if rng.random() < 0.5:
            query.pop("select", None)
        if never_satisfied({"structuredQuery": query}):
            # The emulator does not require that an alternative's documents have the field: it counts others.
            query.pop("where")
        aggregations: list[Json] = []
        for place in range(rng.choices([1, 2, 3, 5], [60, 25, 10, 5])[0]):
            aggregation = self._aggregation()
            if rng.random() < 0.8:
                aggregation["alias"] = rng.choice([f"x{place}", f"x{place}", f"q {place}", f"é{place}", "same"])
            aggregations.append(aggregation)
        body: Json = {
            "parent": self._parent_for(query),
            "structuredAggregationQuery": {"structuredQuery": query, "aggregations": aggregations},
        }
        self._reads.at_time(body, 0.05)
        return Request(index, "RunAggregationQuery", "RunAggregationQuery", body)

    def _aggregation(self) -> Json:
        rng = self._rng
        roll = rng.random()
        if roll < 0.3:
            return {"count": {}}
        if roll < 0.4:
            return {"count": {"upTo": str(rng.choice([1, 2, 3, 100]))}}
        path = rng.choice(["n", "n", "a", "b", "m.x", quoted(self._world.field())])
        return {rng.choice(["sum", "avg"]): {"field": {"fieldPath": path}}}

    def nearest(self, index: int) -> Request:
        rng = self._rng
        query: Json = {"from": [{"collectionId": "c"}]}
        if rng.random() < 0.3:
            query["where"] = self.filter()
        dimension = rng.choice([1, 2, 2, 3, 3])
        nearest: Json = {
            "vectorField": {"fieldPath": "v"},
            "queryVector": self._world.values.vector(dimension),
            "distanceMeasure": rng.choice(MEASURES),
            "limit": rng.choice([1, 2, 5, 100]),
        }
        if rng.random() < 0.5:
            nearest["distanceResultField"] = rng.choice(["distance", "a", "`1x`", "m.d"])
        if rng.random() < 0.3:
            nearest["distanceThreshold"] = rng.choice([0.0, 0.5, 1.0, 2.0, 5.0])
        query["findNearest"] = nearest
        if rng.random() < 0.15:
            query["select"] = self._projection()
            # Without the vectors neighbours at the same distance cannot be distinguished from errors.
            query["select"]["fields"].append({"fieldPath": "v"})
        body = {"parent": self._world.root, "structuredQuery": query}
        return Request(index, "RunQuery (findNearest)", "RunQuery", body)
