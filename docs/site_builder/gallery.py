"""The gallery: every example with its picture, its source and one sentence on when to use it.

Pictures are made by running the examples, quickly and with a seeded source, so that they are the same from build to build.
They are made anew when an example or dither itself has changed.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from dither.errors import NotPrivate
from dither.randomness import SeededSource, drawn_from

WHEN = {
    "ask_a_server": "Several people ask about rows that none of them may read.",
    "ask_in_sql": "You have a table and questions in SQL, and want to see what noise and limits do to the answers.",
    "budget_for_life": "Several releases concern different people, and you want everybody's own total.",
    "census_curve": "You have to decide how accurate and how private published counts shall be.",
    "clinic_year": "You show numbers every day, and they must stay private all year.",
    "density_four_ways": "You want a whole distribution, not a few numbers of it.",
    "daily_reset": "Somebody resets a privacy budget every day.",
    "density_dimensions": "You want a whole distribution of several columns.",
    "descent_illustration": "You want to see what one path of stochastic descent shows, and what it does not.",
    "election": "You want to name a winner and not to publish the votes.",
    "fresh_noise_averages_away": "Somebody promises an epsilon for every day, with new noise every day.",
    "gradient_descent": "You want to see descent and its bounds before noise is added.",
    "heavy_hitter": "You look for the most frequent item among many, by name only.",
    "local_domains": "You collect words that nobody can list beforehand, without a trusted collector.",
    "local_emoji": "You want to know what is popular, and nobody may collect who uses what.",
    "local_sensitivity_leaks": "Somebody suggests noise that is fitted to the data at hand.",
    "local_shuffled_central": "You decide whom the people of a survey have to trust.",
    "mars": "Impossible answers, such as negative counts, trouble you.",
    "mean_of_a_sample": "You want to know what a released mean says about the population.",
    "mean_three_ways": "You wonder whether to add noise to a mean or to choose it.",
    "network_weights": "You want to publish a trained network.",
    "noisy_std": "You need a standard deviation.",
    "pareto_noises": "Your data have a heavy tail, and you choose between mean and median.",
    "pricing": "A small change of the answer may be a large change of what it is worth.",
    "publish_country": "You publish many tables over places inside places, which have to add up.",
    "reusable_holdout": "You validate many models on the same rows.",
    "synthetic_adult": "You need rows and not tables, to train a model or to try out a program.",
    "theorem_37": "You consider private descent as in document 2, and want to know what it costs.",
    "top_snps": "You want the best k of very many candidates.",
    "which_accountant": "You add up hundreds of releases, and wonder by which rule.",
}
"""When to use each example."""

TITLES = {
    "ask_in_sql": "Ask in SQL",
    "density_dimensions": "A density in several dimensions",
    "mars": "The population of Mars",
    "mean_three_ways": "A mean, three ways",
    "noisy_std": "A noisy standard deviation",
    "synthetic_adult": "Synthetic census records",
    "top_snps": "Top SNPs",
}
"""Headings of examples whose file name is no good one."""


def examples(root: Path) -> list[Path]:
    """The scripts, in order."""
    return sorted((root / "examples").glob("*.py"))


def title_of(path: Path) -> tuple[str, str]:
    """The first sentence of an example's docstring, and the rest."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first, _, rest = text.partition("\n\n")
    return " ".join(first.split()), rest


def _state(root: Path, path: Path) -> str:
    """What the picture of an example depends on, as a digest."""
    digest = hashlib.sha256()
    for source in [path, *sorted((root / "src" / "dither").rglob("*.py"))]:
        digest.update(source.read_bytes())
    return digest.hexdigest()


def make_pictures(root: Path, folder: Path) -> None:
    """Run the examples, but those for which nothing has changed since their pictures were made."""
    for path in examples(root):
        stamp = folder / f"{path.stem}.txt"
        if not (stamp.exists() and stamp.read_text() == _state(root, path) and (folder / f"{path.stem}.png").exists()):
            with tempfile.TemporaryDirectory() as room, contextlib.redirect_stdout(io.StringIO()):
                run(path, Path(room))
                keep(root, path, Path(room), folder)


def keep(root: Path, path: Path, room: Path, folder: Path) -> None:
    """Keep the picture that a run of an example left in a room."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(room / f"{path.stem}.png", folder / f"{path.stem}.png")
    (folder / f"{path.stem}.txt").write_text(_state(root, path))


def load(path: Path) -> Any:
    """An example as a module."""
    specification = importlib.util.spec_from_file_location(f"gallery_{path.stem}", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


def run(path: Path, room: Path) -> Any:
    """Run one example with seeded noise; with the system's where a ledger refuses seeds, as it should. What it returns
    is what it found."""
    module = load(path)
    try:
        with drawn_from(SeededSource(1)):
            return module.main(out=room, quick=True)
    except NotPrivate:
        return module.main(out=room, quick=True)


def page(root: Path) -> str:
    """The page of the gallery."""
    lines = [
        "# Gallery", "",
        "Every example: when to use it, its picture and its source. Run one with `python examples/NAME.py`. The pictures are made by the build, "
        "from a quick run with a seeded source, so they are the same every time and not private; where an example keeps a ledger, which refuses "
        "seeds, the noise is the operating system's.", "",
    ]  # fmt: skip
    for path in examples(root):
        title, rest = title_of(path)
        about = rest.replace("``", "`").replace("* ", "\n* ")
        lines += [
            f"## {TITLES.get(path.stem, path.stem.replace('_', ' ').capitalize())}", "", f"**Use it when:** {WHEN[path.stem]}", "", title, "",
            f"```{{image}} gallery-pictures/{path.stem}.png", f":alt: {title.replace('`', '')}", ":class: light-ground", ":width: 100%", "```", "",
            ":::{dropdown} What it shows", about, ":::", "",
            f":::{{dropdown}} Source: examples/{path.name}", "```{literalinclude} " + f"../../examples/{path.name}", ":language: python", "```", ":::", "",
        ]  # fmt: skip
    return "\n".join(lines)
