"""Runs many episodes in several processes: creating and parsing requests costs more than waiting."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from queue import Empty
from typing import Any

from .episodes import Episode
from .request import Request, mentions
from .runner import Outcome, Pair

SILENCE_SECONDS_MAX = 120.0
# The number of episodes that may wait for the parent.
BACKLOG_MAX = 50


@dataclass(frozen=True)
class Result:
    """One episode: its number, its project, all its requests and the outcome."""

    number: int
    project: str
    requests: list[Request]
    outcome: Outcome


@dataclass(frozen=True)
class Plan:
    """The parameters of the processes."""

    hearth: str
    emulator: str
    seed: int
    transport: str
    jobs: int
    run: str


def run_episode(pair: Pair, plan: Plan, number: int) -> Result:
    episode = Episode(plan.seed, number, plan.transport, plan.run)
    requests = episode.draw()
    outcome = pair.run(requests)
    # The emulator hangs when it clears a database in which a transaction was begun.
    if not any(mentions(request.body, ("transaction", "newTransaction")) for request in requests):
        pair.clear(episode.world.database)
    return Result(number, episode.project, requests, outcome)


def _work(plan: Plan, first: int, results: Any, enough: Any) -> None:
    """Runs every `jobs`-th episode until the parent has enough."""
    pair = Pair(plan.hearth, plan.emulator)
    number = first
    try:
        while not enough.is_set():
            results.put(run_episode(pair, plan, number))
            number += plan.jobs
        results.put(None)
    except Exception:
        results.put(f"episode {number}: {traceback.format_exc()}")
        raise
    finally:
        pair.close()


def run_episodes(plan: Plan, wanted: int) -> Iterator[Result]:
    """Episodes in the order of completion, until `wanted` requests have been compared."""
    # gRPC's threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    results, enough = context.Queue(maxsize=BACKLOG_MAX), context.Event()
    workers = [
        context.Process(target=_work, args=(plan, first, results, enough), daemon=True) for first in range(plan.jobs)
    ]
    for worker in workers:
        worker.start()
    running, compared = plan.jobs, 0
    while running:
        try:
            result = results.get(timeout=SILENCE_SECONDS_MAX)
        except Empty:
            raise RuntimeError("no episode ended within two minutes: a server hangs") from None
        if isinstance(result, str):
            raise RuntimeError(result)
        if result is None:
            running -= 1
        elif not enough.is_set():
            compared += len(result.outcome.compared)
            yield result
            if compared >= wanted:
                enough.set()
    for worker in workers:
        worker.join()
