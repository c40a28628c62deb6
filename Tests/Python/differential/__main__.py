"""Command line: python -m differential --hearth HOST:PORT --emulator HOST:PORT --seed N --requests N"""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from support.servers import Unavailable, emulator, hearth

from .markdown import table
from .report import Report
from .runner import Pair
from .shrink import Shrinker
from .workers import Plan, run_episode, run_episodes


def main() -> int:
    arguments = _arguments()
    if arguments.markdown:
        print(table())
        return 0
    with ExitStack() as servers:
        try:
            reference = arguments.emulator or servers.enter_context(emulator())
            judged = arguments.hearth or servers.enter_context(hearth())
        except Unavailable as reason:
            print(f"skipped: {reason}", file=sys.stderr)
            if log := os.environ.get("SKIPPED_LOG"):
                with Path(log).open("a", encoding="utf-8") as lines:
                    lines.write(f"{reason}\n")
            return 0
        return _run(arguments, judged, reference)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="differential", description=__doc__)
    parser.add_argument("--hearth", help="host:port of the server to judge; started from HEARTH_BINARY if absent")
    parser.add_argument("--emulator", help="host:port of Google's emulator; started if absent")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=int, default=10_000, help="how many requests to compare")
    parser.add_argument("--episode", type=int, help="run this one episode only")
    parser.add_argument("--transport", choices=["grpc", "rest", "both"], default="both")
    parser.add_argument(
        "--tolerated", type=int, default=0, help="unexplained differences up to which the run counts as passed"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes that send requests")
    parser.add_argument("--shrink", action="store_true", help="make the reproductions small")
    parser.add_argument("--report", type=Path, help="write the report to this file instead of the screen")
    parser.add_argument("--markdown", action="store_true", help="print the table of known differences and end")
    return parser.parse_args()


def _run(arguments: argparse.Namespace, judged: str, reference: str) -> int:
    started = time.monotonic()
    report = Report()
    run = f"{int(time.time()) % 10**7:x}"
    plan = Plan(judged, reference, arguments.seed, arguments.transport, arguments.jobs, run)
    if arguments.episode is not None:
        report.add(run_episode(Pair(judged, reference), plan, arguments.episode))
    else:
        for result in run_episodes(plan, arguments.requests):
            report.add(result)
    seconds = time.monotonic() - started
    if arguments.shrink:
        _shrink(report, Pair(judged, reference))
    if arguments.report:
        with arguments.report.open("w") as out:
            report.write(out, seconds)
        print(f"{report.compared} requests, {report.differences} unexplained differences; see {arguments.report}")
    else:
        report.write(sys.stdout, seconds)
    return 1 if report.differences > arguments.tolerated else 0


def _shrink(report: Report, pair: Pair) -> None:
    for place, group in enumerate(report.groups.values()):
        if group.example is not None:
            smaller = Shrinker(pair, group.project, f"g{place}n").shrink(group.history, group.example)
            if smaller is not None:
                group.history, group.example = smaller
                group.shrunk = True


if __name__ == "__main__":
    sys.exit(main())
