"""The order of the files."""

from __future__ import annotations

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
