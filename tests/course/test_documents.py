"""Every named result of the documents is in the course, and its example runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dither as dp
from dither.course import Result, Results, find, results
from dither.course.documents import documents
from dither.errors import InvalidArgument, WrongType
from support import each, refuses

KINDS = {  # of the second document, by number
    "Definition": [1, 4, 9, 13, 14, 18, 24],
    "Theorem": [2, 5, 10, 26, 27, 35, 36, 37],
    "Lemma": [6, 7, 15, 28],
    "Proposition": [16],
    "Corollary": [17],
    "Example": [3, 8, 11, 12, 19, 20, 21, 22, 23, 25, 29, 30, 31, 32, 33, 34],
}
NUMBERED = {
    2: [f"{kind} {number}" for kind, numbers in KINDS.items() for number in numbers],
    3: [f"Example 1.{number}" for number in (1, 2, 5, 6)]
    + ["Theorem 1.3", "Proposition 1.4", "Algorithm 1", "Equation (1)", "Equation (2)"],
}


def test_every_numbered_result_of_the_documents_is_there():
    for document, names in NUMBERED.items():
        assert {*names} <= {result.number for result in results(document)}
    assert sorted(number for numbers in KINDS.values() for number in numbers) == [*range(1, 38)]


def test_no_number_is_there_twice_and_every_document_has_some():
    numbers = [(result.document, result.number) for result in results()]
    assert len(set(numbers)) == len(numbers)
    assert {result.document for result in results()} == set(documents()) == {1, 2, 3, 4, 5}


@pytest.mark.slow
@each("result", results())
def test_the_example_runs_and_prints_what_is_written(result):
    assert repr(result.run()) == result.output
    assert "dp." in result.example


@each("where", sorted({result.where for result in results()}))
def test_what_implements_a_result_is_public(where):
    module, _, name = where.rpartition(".")
    owner = dp if module == "dither" else getattr(dp, module.removeprefix("dither."))
    assert name in dir(owner)
    [first, *_] = [result for result in results() if result.where == where]
    assert first.implementation is getattr(owner, name)


def test_a_result_is_found_by_number_or_by_a_word_of_its_title():
    assert [result.title for result in find("Theorem  10")] == ["Privacy of mixed noise"]
    assert find("theorem 1.3") == find("Theorem 1.3")
    assert {result.document for result in find("report noisy max")} == {2, 4}
    assert all("median" in result.title.lower() for result in find("median"))


EQUATIONS = {2: range(1, 12), 3: range(1, 9)}


def test_all_nineteen_equations_are_found_and_an_ambiguous_one_asks_for_the_document():
    for document, numbers in EQUATIONS.items():
        for number in numbers:
            [result] = find(f"Eq ({number})", document=document)
            assert number in result.equations
    for number in EQUATIONS[3]:
        with refuses(InvalidArgument, "document=2", "document=3"):
            find(f"equation ({number})")
    for number in (9, 10, 11):
        assert find(f"equation ({number})")[0].document == 2


FOUND = {
    "GWAS": "Discussion, GWAS", "snp": "Discussion, GWAS", "Apple": "In practice, Apple", "SGD": "Theorem 36",
    "Census": "7, Census 2020", "adaptive": "Summary, 5", "holdout": "Summary, 5", "infinite": "Infinite outputs",
    "Thm 26": "Theorem 26", "Def 4": "Definition 4", "Ex. 1.5": "Example 1.5", "theorem 26.": "Theorem 26",
    "Kolmogorov–Smirnov": "KS utility", "W&Z": "Theorem (Wasserman and Zhou), rate",
    "density tails": "Noise with heavy tails",
    "document 3, equation (5)": "Proposition 1.4", "document 5: 1.1": "1.1", "permute-and-flip": "Report noisy max",
}  # fmt: skip


PRINTED = {  # words that stand in a document, by the result that they belong to
    (1, "Practical problem"): "multivariate; practically drawn",
    (1, "KS utility"): "KS distance; KS exponential mechanism; kolmogorov smirnov",
    (1, "Example, the mean"): "reporting the mean; squared error",
    (1, "Example, the mean, over the sample"): "unconditional distribution",
    (1, "Rate of the histogram without noise"): "noiseless histogram",
    (1, "Summary, 3"): "noisy-max; single average",
    (2, "Definition 9"): "Mixed Noise Mechanism; MNM",
    (2, "Example 8"): "multiple queries",
    (2, "Example 22"): "Issue 3; unrealistic output; Mars",
    (2, "Example 23"): "nSV; nSD; noisy standard deviation",
    (2, "Definition 24"): "Issue 3; C_q; ΔC",
    (2, "Issue 1"): "too much noise; Issue 1",
    (2, "Gradient descent"): "GD; Gradient Descent",
    (2, "Example 32"): "OLS",
    (2, "Theorem 35"): "learning rates; constant learning rate",
    (2, "Illustration"): "Illustrations; number of gradients",
    (2, "Privacy of descent"): "Privacy of SGD",
    (2, "Theorem 36"): "Differentially Private SGD; DP-SGD",
    (2, "Utility I"): "A1; A_2; A₃; data utility",
    (2, "Utility II"): "kappa; κ",
    (3, "Example 1.2"): "pricing; digital good",
    (4, "Sensitivity of an average"): "linear queries; statistical queries",
    (4, "Report noisy max"): "reportNoisyMax; noisy-max",
    (5, "6, budget"): "privacy budget",
    (5, "5, two algorithms"): "composition theorem",
    (5, "7, a budget reset every day"): "Apple; 7.1",
    (5, "7, Census 2020"): "2020 Census; 7.2; privacy-accuracy spectrum",
}


@each("place", PRINTED)
def test_a_result_is_found_by_the_words_that_are_printed(place):
    for text in PRINTED[place].split("; "):
        assert place[1] in [result.number for result in find(text, document=place[0])], text


@each("text", FOUND)
def test_a_result_is_found_by_abbreviations_and_by_words_of_its_text(text):
    assert FOUND[text] in [result.number for result in find(text)]


def test_abbreviations_name_the_same_result():
    assert find("Thm. 26") == find("Thm 26") == find("theorem 26")
    assert find("Prop 1.4") == find("proposition 1.4", document=3)


def test_one_part_of_a_theorem_that_fails_does_not_make_it_fail():
    [theorem] = find("theorem 36")
    assert theorem.verdict == "holds with conditions"
    assert [claim.verdict for claim in theorem.claims] == ["holds", "holds with conditions", "fails"]


@pytest.mark.parametrize("text", ["", "theorem 99", "unheard of"])
def test_what_is_not_there_is_refused(text):
    with refuses(InvalidArgument, "dither.course.results"):
        find(text)
    with refuses(WrongType, "text", "a number as printed"):
        find(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("document", [0, 6, "two"])
def test_there_are_five_documents(document):
    with refuses(InvalidArgument, "from 1 to 5"):
        results(document)


def test_results_print_one_line_each():
    assert len(str(results()).splitlines()) == len(results())
    assert str(Results()) == ""


def test_a_slice_of_results_prints_like_all_of_them():
    lemmas = find("lemma")
    assert isinstance(lemmas[:2], Results)
    assert [result.number for result in lemmas[:2]] == ["Lemma 6", "Lemma 7"]
    assert str(lemmas[:2]).count("\n") == 1
    assert isinstance(lemmas[0], Result)
    assert str(lemmas[:0]) == ""


def test_an_example_of_several_lines_is_shown_as_it_is_typed():
    [result] = find("example 23")
    shown = result.session.splitlines()
    assert shown[0].startswith(">>> x, y = ")
    assert shown[-1] == result.output
    assert [line[4:] for line in shown[:-1]] == result.example.splitlines()
    [result] = find("theorem 26")
    assert [line[:4] for line in result.session.splitlines() if "b = width / (" in line] == ["... "]


def test_the_documents_are_named_by_their_numbers_everywhere():
    """ "The lecture" and "the notes" say nothing to a reader who has five of them."""
    root = Path(__file__).parents[2]
    pages = [*root.glob("docs/**/*.md"), *root.glob("docs/site_builder/*.py"), *root.glob("examples/*.py")]
    pages += [*root.glob("src/dither/**/*.py"), root / "src" / "dither" / "course" / "documents.toml"]
    other = re.compile(
        r"[Cc]lass notes \d\b(?<!Class notes 4)|seed 00\d|[Tt]he (?:lecture|slides)(?:'s)?\b(?! document)|Wu's"
    )
    for page in pages:
        if "generated" not in page.parts:
            found = other.search(page.read_text(encoding="utf-8"))
            assert found is None, (page.name, found)
