"""The page that puts the paper beside ours leaves nothing out, and every line says where or why not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PAGE = (TOP / "docs" / "paper.md").read_text(encoding="utf-8")
LINES = [
    line
    for line in PAGE.partition("## Abstract")[2].splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| the paper |"))
]
REASONS = ("no experiment: ", "none: ")  # with which the second cell of a line may begin instead of a third cell


@pytest.mark.parametrize("what", [*(f"Figure {n}" for n in range(1, 12)), *(f"Table {n}" for n in range(1, 5))])
def test_every_figure_and_table_of_the_paper_has_a_line(what):
    assert re.search(rf"\| \*\*{what}( \(a\))?\*\*", PAGE), what


def test_the_two_figures_of_more_examples_and_the_algorithms_have_lines():
    assert "**Figures 12 and 13**" in PAGE
    assert "**Algorithm 1**" in PAGE
    assert "**Algorithm 2**" in PAGE


@pytest.mark.parametrize("line", LINES)
def test_every_line_has_a_place_a_verdict_or_a_reason(line):
    said, here, where = (cell.strip() for cell in line.strip("|").split("|"))
    assert said
    assert here
    assert where or here.startswith(REASONS), line


def test_the_links_pictures_and_tests_of_the_page_exist():
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", PAGE):
        assert target.startswith("https://") or (TOP / "docs" / target).exists(), target
    for path in re.findall(r"`((?:tests|benchmarks)/[\w/.]+)`", PAGE):
        assert (TOP / path).exists(), path


def test_the_headings_that_the_page_links_to_exist():
    for name, anchor in re.findall(r"\]\(([\w-]+\.md)#([\w-]+)\)", PAGE):
        text = (TOP / "docs" / name).read_text(encoding="utf-8")
        headings = [
            re.sub(r"[^\w\s-]", "", h).strip().lower().replace(" ", "-")
            for h in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        ]
        assert anchor in headings, f"{name}#{anchor}"
