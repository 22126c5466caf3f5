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


def effects(page: str) -> dict[str, list[tuple[str, str, str]]]:
    """By claim: effect, n and verdict, by each protocol that the table has."""
    text = (TOP / "docs" / page).read_text(encoding="utf-8").partition("claims")[2].partition("## By seed")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    return {
        row[0]: [(row[i].partition(" ")[0], row[i + 1], row[i + 2]) for i in range(2, len(row), 3)]
        for row in rows
        if len(row) in {5, 8} and re.match(r"[-+]\d", row[2])
    }


SMALL, INK = "IM2 (norm of x in [-0.5, 0.5])", "IM2 (norm of x in [0, 1])"
STARTS = ("distance to the prototype", "size of the first step")
SAID = {
    "paper-mnist.md": {
        **{
            f"| {loss}: time -{time} %": [f"time of {loss} against A", f"gradient steps of {loss} against A"]
            for loss, time in {"B": 36, "C": 77, "D": 82, "E": 85, "F": 69}.items()
        },
        "| the same times as a user": [f"waiting time of {loss} against A, images alone" for loss in "BCDEF"],
        '| IM1 "peaks': ["IM1 of B against A", "IM1 of C against A"],
        "| removing L_pred in E": ["IM1 of E against A"],
        "| IM2 of C": [f"{im2} of {loss} against A" for im2 in (SMALL, INK) for loss in "CD"],
        "| IM2 of B": [f"{im2} of B against A" for im2 in (SMALL, INK)],
        '| A gives "the most sparse': [f"EN of {loss} against A: A is the sparsest" for loss in "BC"],
        '| "L_proto leads to more sparse': [f"EN of {loss} against B: L_proto is sparser than L_AE" for loss in "CE"],
    },
    "paper-mnist-k.md": {
        '| "For large values of K': [f"{what}, K = all against 5" for what in STARTS],
        '| at large K "L_AE': [f"{im2} of D against C, all K: L_AE improves it" for im2 in (SMALL, INK)],
        '| "this effect diminishes': [f"EN of {loss} with K = all against 5: less sparse" for loss in "CE"],
        '| interpretability "initially': [f"{what} of D with K = 20 against 2" for what in ("IM1", SMALL, INK)],
        '| "If ... all instances': [f"{what} of D with K = all against 20" for what in ("IM1", SMALL)],
    },
    "paper-breast-cancer.md": {
        "| B in 13 %": ["gradient steps of B against A"],
        "| C: time -92": ["time of C against A", "gradient steps of C against A"],
        "| the same as a user": [f"waiting time of {loss} against A, rows alone" for loss in "BC"],
        "| IM1 -55 %": ["IM1 of B against A", "IM1 of C against A"],
        "| IM2 -81 %": ["IM2 of B against A", "IM2 of C against A"],
        '| "Loss function A yields': ["EN of B against A: A is the sparsest", "features changed, B against A"],
        '| "B and C ... perturb': ["attributes per changed feature, B against A"],
    },
}


@pytest.mark.parametrize(("page", "start"), [(page, start) for page, lines in SAID.items() for start in lines])
def test_the_figures_of_a_line_are_those_of_its_page(page, start):
    (line,) = (line for line in LINES if line.startswith(start))
    known = effects(page)
    for claim in SAID[page][start]:
        for effect, n, verdict in known[claim]:
            assert re.search(rf"(?<![\d.]){re.escape(effect)}(?![\d.])", line), (claim, effect)
            assert f"{int(n):,}" in line, (claim, n)
            assert verdict in line, (claim, verdict)
