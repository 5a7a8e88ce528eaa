"""A made-up shop, from its card to the page about an answer, each step with the command it stands for.

Everything is in one folder of its own and made anew each time, the ledger too. That is for show: a real ledger is
never remade.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dither.cli import printing
from dither.cli.files import LEDGER_ENDINGS
from dither.errors import BudgetExceeded, InvalidArgument
from dither.present.text import table as text_table
from dither.tables import table as session

REGIONS = ("north", "northeast", "east", "southeast", "south", "southwest", "west", "northwest")
PRODUCTS = 400
FILES = ("visits.parquet", "visits.toml", "regions.svg", "regions.html")
LEDGER = "visits.ledger.sqlite"
RECEIPTS = ("visits.toml.receipt",)
MARKER = ".dither-demo"
MARK = "Made by dither demo. Its files in this folder are deleted whenever the demo runs here again.\n"

CARD = f"""\
name = "visits"
source = "visits.parquet"
unit = "customer"           # all rows of one customer are protected together
rows_without_unit = "drop"  # rows without a customer are left out
max_groups = 1              # a customer counts in one group whose key is not public,
max_rows = 20               # and for at most 20 visits in all: few ever have more
delta = 1e-7                # for keys that are not public
ledger = "{LEDGER}"

[budget]                    # what may ever be learned, by all questions together
epsilon = 2
delta = 1e-6

[columns.customer]
type = "integer"

[columns.day]
type = "date"

[columns.region]            # the shops are where they are: public
type = "text"
keys = {list(REGIONS)}

[columns.product]           # not public: no keys
type = "text"

[columns.amount]            # known from the price list, not from the rows
type = "number"
bounds = [0, 150]
""".replace("'", '"')

BY_REGION = "SELECT region, COUNT(*) AS visits, AVG(amount) AS spend FROM visits GROUP BY region"
BY_PRODUCT = "SELECT product, COUNT(*) AS visits FROM visits GROUP BY product ORDER BY visits DESC LIMIT 8"
QUANTILES = "SELECT MEDIAN(amount) AS median, QUANTILE(amount, 0.9) AS nine_of_ten FROM visits"
TOO_MUCH = "SELECT COUNT(DISTINCT customer) AS customers FROM visits"


def make_visits(rows: int) -> Any:
    """Return the demo's Arrow table of ``rows`` invented visits, which depends on the number of rows only.

    Customers live in one region and seldom shop in another; some come far more often than others; a few products are
    bought by nearly everybody, many by hardly anybody; amounts have a long tail. The constants that shape these laws
    were chosen by eye.

    >>> make_visits(1000).num_rows, make_visits(1000).equals(make_visits(1000))
    (1000, True)
    """
    people = max(rows // 6, 1)
    customer = (people * _mixed(rows, 1) ** 1.15).astype(np.int64)
    home = (len(REGIONS) * _mixed(people, 2) ** 1.4).astype(np.int64)[customer]
    away = (len(REGIONS) * _mixed(rows, 3)).astype(np.int64)
    region = np.where(_mixed(rows, 4) < 0.02, away, home)
    product = np.minimum((float(PRODUCTS) ** _mixed(rows, 5)).astype(np.int64), PRODUCTS) - 1
    amount = np.rint(100 * (2 - 14 * np.log(_mixed(rows, 6)) * (1 + 0.1 * region))) / 100
    day = np.datetime64("2024-01-01") + (366 * _mixed(rows, 7)).astype(np.int64)
    return pa.table(
        {
            "customer": customer,
            "day": day,
            "region": np.array(REGIONS)[region],
            "product": np.array([_name(i) for i in range(PRODUCTS)])[product],
            "amount": amount,
        }
    )


def _mixed(count: int, stream: int) -> NDArray[np.float64]:
    """Return ``count`` numbers between 0 and 1 that look random, as the splitmix64 generator mixes 1, 2, …, count.

    Each ``stream`` (a small whole number) gives a different sequence. The numbers are used for invented data only,
    never as noise.
    """
    x = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(stream << 40)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return ((x >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def _name(i: int) -> str:
    """Return the name of a product by its number."""
    kinds = ("apples", "bread", "cheese", "coffee", "eggs", "flour", "honey", "milk", "pasta", "pears", "rice", "salt",
             "soap", "soup", "sugar", "tea", "tomatoes", "towels", "vinegar", "yeast")  # fmt: skip
    return f"{kinds[i % len(kinds)]} {1 + i // len(kinds)}"


def run(rows: int, folder: str) -> None:
    """Make a shop with ``rows`` visits in ``folder``, ask the demo's questions, and show the answers beside the true
    numbers.
    """
    target = Path(folder)
    _clear(target)
    card, visits = str(target / "visits.toml"), make_visits(rows)
    pq.write_table(visits, target / "visits.parquet")

    printing.echo(
        f"A made-up shop: {rows:,} visits of some {rows // 6:,} customers, in {target / 'visits.parquet'}.\n"
        "Nobody in it exists, so this demo may show the truth beside the answers, which is never shown otherwise."
    )
    _step(1, "The steward writes a card: what is public about the table. The rows are not read for it.")
    _command("init", str(target / "visits.parquet"), "--unit", "customer", "--output", card)
    (target / "visits.toml").write_text(CARD, encoding="utf-8")
    printing.echo("\nThe draft explains every line. Filled in, without the explanations:\n")
    printing.echo("".join(f"    {line}\n" for line in CARD.splitlines() if line), end="")
    _command("check", card)

    _step(2, "An analyst asks what a question would cost. No data are read, and nothing is charged.")
    _command("explain", card, BY_REGION, "--epsilon", "0.5")

    _step(3, "The question, with a page about its answer.")
    page = str(target / "regions.html")
    _command("query", card, BY_REGION, "--epsilon", "0.5", "--report", page)
    answer = _beside_truth(visits, card, BY_REGION, {"epsilon": 0.5}, ("visits", "spend"))
    printing.echo(
        "Of 20 such counts about 19 are within their ± of the truth. At most 20 visits of a customer count,\n"
        "and almost none has more: a lower limit would mean less noise, and counts that are low by what it leaves out."
    )

    _step(4, "Products are not public. One that hardly anybody buys is not shown: its name could give somebody away.")
    _command("query", card, BY_PRODUCT, "--epsilon", "0.8", "--max-groups", "20", "--max-rows", "3")
    how = {"epsilon": 0.8, "max_groups": 20, "max_rows": 3}
    _beside_truth(visits, card, BY_PRODUCT, how, ("visits",))
    printing.echo(
        "The largest products are found first, each customer divided among all that they bought; then they are counted."
    )

    _step(5, "Quantiles are chosen, not computed: values near the rank asked for are likeliest.")
    _command("query", card, QUANTILES, "--epsilon", "0.3")
    _beside_truth(visits, card, QUANTILES, {"epsilon": 0.3}, ("median", "nine_of_ten"))

    _step(6, "The same question again: the recorded answer, for free. Averaging cannot wash the noise out.")
    _command("query", card, QUANTILES, "--epsilon", "0.3")

    _step(7, "A question that costs more than is left is refused, before any data are read.")
    _command("query", card, TOO_MUCH, "--epsilon", "1")

    _step(8, "What was spent, and that every entry is as it was written.")
    _command("budget", card, "--verify")

    _step(9, "The answer by region as a picture and as a page to hand on.")
    from dither.present.drawing import svg, terminal

    (target / "regions.svg").write_text(svg(answer.chart("visits")), encoding="utf-8")
    printing.echo(terminal(answer.chart("visits"), 60))
    printing.echo(f"\npicture: {target / 'regions.svg'}\npage:    {page}\n")
    me = sys.argv[0] if Path(sys.argv[0]).name == "dither" else "dither"
    printing.echo(f"Ask your own:  {shlex.quote(me)} query {shlex.quote(card)} 'SELECT …' --epsilon 0.1")
    printing.echo(
        "The next demo starts all over, ledger included. A real ledger is never remade: it is what protects people."
    )
    printing.echo(
        "\nHere the analyst could read the rows. A server lets them ask and nothing else: make serve-demo starts one\n"
        "on this shop, with a steward and an analyst to sign in as; dither serve FOLDER serves your own cards."
    )


def _clear(target: Path) -> None:
    """Create the demo's folder ``target``, or empty one that an earlier demo has made; refuse any other.

    A folder with anything else in it is refused: a table of real people, and the ledger that protects them, could have
    the same names.
    """
    demo_files = {MARKER, *FILES, *(f"{LEDGER}{ending}" for ending in LEDGER_ENDINGS), *RECEIPTS}
    try:
        target.mkdir(parents=True, exist_ok=True)
        existing = {item.name for item in target.iterdir()}
        if existing and (MARKER not in existing or existing - demo_files):
            raise InvalidArgument(
                "--folder",
                "a new or empty folder, or one that a demo has made",
                "one with other things in it",
                "pass --folder with another name, or move them away yourself",
            )
        (target / MARKER).write_text(MARK, encoding="utf-8")
        for name in existing - {MARKER}:
            (target / name).unlink()
    except OSError:
        raise InvalidArgument(
            "--folder", "a folder that can be written", "one that cannot", "pass --folder out/demo"
        ) from None


def _step(number: int, text: str) -> None:
    """Print the number and the title of a step."""
    printing.echo(f"\n{number}. {text}")


def _command(*arguments: str) -> None:
    """Print a command and run it in this process."""
    from dither.cli.app import command

    printing.echo(f"\n$ dither {' '.join(shlex.quote(part) for part in arguments)}")
    try:
        if command()(list(arguments), standalone_mode=False) == 130:
            raise KeyboardInterrupt
    except BudgetExceeded as error:
        printing.echo(f"dither: {error}")


def _beside_truth(visits: Any, card: str, sql: str, how: dict[str, Any], columns: Sequence[str]) -> Any:
    """Print an answer beside DuckDB's result on the rows, and return the answer.

    The question ``sql`` was asked before with the options ``how``, so that its recorded answer is free. ``columns``
    names the answer's columns that are shown, each followed by the true number; group keys come first. ``visits`` is
    the table of rows, ``card`` the path of the card.
    """
    with session.open(card) as table:
        answer = table.sql(sql).release(**how)
    names, truth = _truth(visits, sql.partition(" ORDER BY ")[0])
    keys = [name for name in answer.columns if name not in answer.errors]
    exact = {tuple(row[names.index(key)] for key in keys): row for row in truth}
    header = [*keys, *(part for name in columns for part in (name, "truth*"))]
    lines = []
    for row in answer.rows:
        key = tuple(row[answer.columns.index(name)] for name in keys)
        line = [str(part) for part in key]
        for name in columns:
            line += [_number(row[answer.columns.index(name)]), _number(exact[key][names.index(name)])]
        lines.append(line)
    right = [False] * len(keys) + [True] * (len(header) - len(keys))
    printing.echo("\n  * only in this demo: the truth is never shown otherwise")
    printing.echo(indent("\n".join(text_table(header, lines, right, rule=False)), "  "))
    return answer


def _truth(visits: Any, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the column names and the rows of the result of ``sql`` on the table ``visits``, computed by DuckDB without
    privacy.
    """
    with duckdb.connect() as engine:
        engine.register("visits", visits)
        result = engine.execute(sql)
        return [item[0] for item in result.description or ()], result.fetchall()


def _number(value: Any) -> str:
    """Return a number as text: whole numbers with separators, others with two decimals, NULL for None."""
    if value is None:  # a group without people
        return "NULL"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
