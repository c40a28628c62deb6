"""The order of the files, and the record of what was skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

#: Files that take longest. With several processes they begin first, so that all processes end at about the same time.
LONG = [
    "test_exhaustion",
    "test_faults",
    "test_rule_verdicts",
    "test_database_abuse",
    "test_carry_over",
    "test_extremes",
    "test_streams",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Adds the reason of each skipped test to the file that SKIPPED_LOG names, for the last line of `make test`."""
    log = os.environ.get("SKIPPED_LOG")
    # With several processes each has the hook; the first one knows all reports.
    if not log or hasattr(config, "workerinput"):
        return
    with Path(log).open("a", encoding="utf-8") as lines:
        for report in terminalreporter.stats.get("skipped", []):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            lines.write(f"{reason.removeprefix('Skipped: ').splitlines()[0]}\n")
