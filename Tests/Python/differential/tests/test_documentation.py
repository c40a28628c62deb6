"""The published list of differences is the one that is used for comparing."""

from __future__ import annotations

from pathlib import Path

from differential.markdown import table

DOCUMENT = Path(__file__).parents[4] / "docs" / "reference" / "differences.md"


def test_the_documented_differences_are_the_known_ones() -> None:
    assert DOCUMENT.read_text().endswith("\n\n" + table() + "\n"), "print it anew: python -m differential --markdown"
