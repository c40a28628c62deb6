"""The published list of differences is the one that is used for comparing."""

from __future__ import annotations

from itertools import dropwhile, takewhile
from pathlib import Path

from differential.markdown import table

DOCUMENT = Path(__file__).parents[4] / "docs" / "reference" / "differences.md"
HEADING = "## Requests and their answers"


def section(document: str, heading: str) -> list[str]:
    """The lines between a heading and the next one."""
    lines = dropwhile(lambda line: line != heading, document.splitlines())
    return list(takewhile(lambda line: not line.startswith("#"), list(lines)[1:]))


def test_the_documented_differences_are_the_known_ones() -> None:
    rows = [line for line in section(DOCUMENT.read_text(), HEADING) if line.startswith("|")]
    assert "\n".join(rows) == table(), "print it anew: python -m differential --markdown"
