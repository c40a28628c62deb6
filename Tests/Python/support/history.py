"""Checks histories of lists to which transactions append: whether some serial order explains them.

Every element is appended once, so a list that was read shows which transactions came before, and in which order. The
final lists and all reads determine the dependencies of Adya ("Weak Consistency", 1999), as Elle infers them:

- ww: the writer of an element, to the writer of the next one in the list;
- wr: the writer of the last element that was read, to its reader;
- rw: the reader of a list, to the writer of the first element that it did not see yet (also of a list that was empty,
  or that a query did not find: so phantoms are detected);
- rt: a transaction that had ended, to one that began afterwards. Firestore guarantees that, too.

A cycle among them is a history that no serial order explains. Anomalies that need no graph are reported directly: lost,
doubled and invented elements, reads of uncommitted data, reads of a part of a transaction.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

COMMITTED, FAILED, UNKNOWN = "committed", "failed", "unknown"


@dataclass
class Transaction:
    name: str
    began: float = 0
    ended: float = 0
    outcome: str = COMMITTED
    #: The lists that were read; a missing document is an empty list.
    reads: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    appends: list[tuple[str, int]] = field(default_factory=list)
    #: The commit time that the server reported.
    commit_time: int | None = None


class Judge:
    def __init__(self, transactions: Iterable[Transaction], final: dict[str, tuple[int, ...]]) -> None:
        self.anomalies: list[str] = []
        self.final = final
        self.positions = {key: {e: i for i, e in enumerate(elements)} for key, elements in final.items()}
        present = {(key, element) for key, elements in final.items() for element in elements}
        all_of_them = list(transactions)
        for one in all_of_them:
            # Without an answer the lists must show the outcome.
            if one.outcome == UNKNOWN:
                one.outcome = COMMITTED if present & set(one.appends) else FAILED
        self.committed = [one for one in all_of_them if one.outcome == COMMITTED]
        self.writers = {append: index for index, one in enumerate(self.committed) for append in one.appends}
        self.others = {append: one for one in all_of_them if one.outcome == FAILED for append in one.appends}
        self.edges: list[dict[int, str]] = [{} for _ in self.committed]
        self._check_lists()
        for one in all_of_them:
            self._check_reads(one)
        if not self.anomalies:
            self._depend()
            self._real_time()
            self._check_times()
            self._find_cycles()

    # Without a graph

    def _check_lists(self) -> None:
        for key, elements in self.final.items():
            if len(set(elements)) != len(elements):
                self.anomalies.append(f"an element stands twice in {key}: {elements}")
            for element in elements:
                if (key, element) in self.others:
                    self.anomalies.append(f"{element} in {key} is of {self.others[key, element].name}, which failed")
                elif (key, element) not in self.writers:
                    self.anomalies.append(f"nobody appended {element} to {key}")
        for key, element in self.writers:
            if element not in self.positions.get(key, {}):
                name = self.committed[self.writers[key, element]].name
                self.anomalies.append(f"lost: {element} in {key}, which {name} appended")

    def _check_reads(self, one: Transaction) -> None:
        """A failed transaction must not have seen invalid data either."""
        for key, elements in one.reads:
            order = self.final.get(key, ())
            if elements != order[: len(elements)]:
                self.anomalies.append(f"{one.name} read {elements} of {key}, which went {order}")
            elif 0 < len(elements) < len(order):
                last, following = (self.writers.get((key, e)) for e in order[len(elements) - 1 : len(elements) + 1])
                if last is not None and last == following:
                    self.anomalies.append(f"{one.name} read a half of {self.committed[last].name} in {key}")

    # The graph

    def _edge(self, source: int | None, target: int | None, kind: str) -> None:
        if source is not None and target is not None and source != target:
            self.edges[source].setdefault(target, kind)

    def _depend(self) -> None:
        for key, elements in self.final.items():
            for before, after in zip(elements, elements[1:], strict=False):
                self._edge(self.writers.get((key, before)), self.writers.get((key, after)), "ww")
        for index, one in enumerate(self.committed):
            for key, elements in one.reads:
                order = self.final.get(key, ())
                if elements:
                    self._edge(self.writers.get((key, elements[-1])), index, "wr")
                if len(elements) < len(order):
                    self._edge(index, self.writers.get((key, order[len(elements)])), "rw")

    def _real_time(self) -> None:
        """By a chain of moments, one for each end, instead of an edge for each pair."""
        count = len(self.committed)
        by_end = sorted(range(count), key=lambda index: self.committed[index].ended)
        ends = [self.committed[index].ended for index in by_end]
        self.edges += [{} for _ in by_end]
        for place, index in enumerate(by_end):
            self.edges[index].setdefault(count + place, "rt")
            if place + 1 < count:
                self.edges[count + place].setdefault(count + place + 1, "rt")
        for index, one in enumerate(self.committed):
            earlier = bisect_left(ends, one.began)
            if earlier > 0:
                self.edges[count + earlier - 1].setdefault(index, "rt")

    def _check_times(self) -> None:
        """Commit times go with the order of writes."""
        for source, one in enumerate(self.committed):
            for target, kind in self.edges[source].items():
                if kind != "ww" or target >= len(self.committed):
                    continue
                times = one.commit_time, self.committed[target].commit_time
                if None not in times and times[0] >= times[1]:  # type: ignore[operator]
                    self.anomalies.append(f"{self.committed[target].name} follows {one.name}, at times {times}")

    def _find_cycles(self) -> None:
        for component in _components(self.edges):
            self.anomalies.append("cycle: " + self._describe(component))

    def _describe(self, component: list[int]) -> str:
        inside = set(component)
        best: list[int] = []
        for start in [index for index in component if index < len(self.committed)][:50]:
            cycle = _shortest_cycle(self.edges, start, inside)
            if cycle and (not best or len(cycle) < len(best)):
                best = cycle
        words = []
        for index, following in zip(best, best[1:] + best[:1], strict=True):
            if index < len(self.committed):
                words.append(f"{self.committed[index].name} -{self.edges[index][following]}->")
        return f"{' '.join(words)} ({len(component)} entangled)"


def anomalies(transactions: Iterable[Transaction], final: dict[str, tuple[int, ...]]) -> list[str]:
    return Judge(transactions, final).anomalies


def _components(edges: list[dict[int, str]]) -> list[list[int]]:
    """Strongly connected components of more than one node; Tarjan's algorithm without recursion."""
    order: dict[int, int] = {}
    low = [0] * len(edges)
    stack: list[int] = []
    on_stack = [False] * len(edges)
    found = []
    for root in range(len(edges)):
        if root in order:
            continue
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack[root] = True
        work = [(root, iter(edges[root]))]
        while work:
            node, following = work[-1]
            for target in following:
                if target not in order:
                    order[target] = low[target] = len(order)
                    stack.append(target)
                    on_stack[target] = True
                    work.append((target, iter(edges[target])))
                    break
                if on_stack[target]:
                    low[node] = min(low[node], order[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack[member] = False
                        component.append(member)
                        if member == node:
                            break
                    if len(component) > 1:
                        found.append(component)
    return found


def _shortest_cycle(edges: list[dict[int, str]], start: int, inside: set[int]) -> list[int]:
    previous: dict[int, int] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for target in edges[node]:
            if target == start:
                cycle = [node]
                while cycle[-1] != start:
                    cycle.append(previous[cycle[-1]])
                return cycle[::-1]
            if target in inside and target not in previous:
                previous[target] = node
                queue.append(target)
    return []
