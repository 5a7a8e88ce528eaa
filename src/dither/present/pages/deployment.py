"""A record of a deployment for lawyers and registries: its guarantee, algorithms and safeguards.

The topics are those of NIST's guidelines for evaluating differential privacy guarantees (SP 800-226), in our words and
in the order of its pyramid: the guarantee (parameters, unit, composition, post-processing), the algorithms (utility,
bias, implementation), and their foundations (query and trust model, access control, side channels, data collection). A
last part has the fields of deployment registries. Answers come from the card, the ledger and the code; questions that
only the steward can answer are marked as open. Nothing is taken from the rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from dither.guarantees import ZCDP, Guarantee, PureDP
from dither.ledger import Entry, Ledger
from dither.present.pages import sheet
from dither.tables.card.model import Card

CARD, LEDGER, DITHER, STEWARD = "card", "ledger", "dither", "steward"
OPEN = "to be answered by the steward"
"""The text in place of an answer that only the steward knows."""


GROUPS = "k people are protected with k times ε, and δ grows as well: what is true of a large group can be learned"
POST_PROCESSING = "yes: what is computed from answers alone costs nothing more, at any time"
BIAS = (
    "counts, sums and means leave out what is beyond the limits on one person; values beyond the bounds are moved to "
    "them; groups below a private threshold are not shown; whole counts of published tables are never negative"
)
SMALL_GROUPS = (
    "the noise is as large for a small group as for a large one, so the relative error of small groups is larger"
)
QUERY_MODEL = "interactive: questions may depend on earlier answers, and each is charged before rows are read"
SIDE_CHANNELS = (
    "the time that a question takes depends on the data: a server rounds it up to ticks, and nothing else hides it; "
    "errors never contain a value, and each error while rows were read is counted: too many close the table"
)
EVIDENCE = (
    "every mechanism has its proof beside its code; the tests certify it and try to refute it, and `dither audit` does "
    "so again on any machine"
)


@dataclass(frozen=True)
class Item:
    """A question of the record, its answer, and the source of the answer: card, ledger, dither or steward.

    >>> Item("Who may ask?", "", "steward").text
    'to be answered by the steward'
    """

    question: str
    answer: str
    source: str
    hint: str = ""

    @property
    def text(self) -> str:
        """Return the answer; for an open question, a text that the steward has to answer it, with the hint."""
        return self.answer or (f"{OPEN}: {self.hint}" if self.hint else OPEN)


@dataclass(frozen=True)
class Section:
    """A group of questions under a title."""

    title: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Deployment:
    """The record of a deployment: all sections about one table.

    >>> from dither.tables.card.model import ColumnCard
    >>> card = Card("visits", "visits.csv", {"age": ColumnCard("integer")}, budget=PureDP(1))
    >>> record = deployment(card, None, "0.1.0")
    >>> record.sections[0].items[0].answer
    'one row: each row is a person'
    """

    name: str
    sections: tuple[Section, ...]

    @property
    def unanswered(self) -> int:
        """Return how many questions the steward has to answer."""
        return sum(not item.answer for section in self.sections for item in section.items)

    def markdown(self) -> str:
        """Return the record as Markdown."""
        lines = [f"# Differential privacy record: {self.name}", "", self.note, ""]
        for section in self.sections:
            lines += [f"## {section.title}", ""]
            for item in section.items:
                lines += [f"**{item.question}**", "", f"{item.text} *({item.source})*", ""]
        return "\n".join(lines)

    def to_json(self) -> str:
        """Return the record as JSON; open answers are null."""
        sections = [
            {"title": section.title, "items": [_document(item) for item in section.items]} for section in self.sections
        ]
        return json.dumps({"name": self.name, "sections": sections}, indent=2, ensure_ascii=False)

    @property
    def note(self) -> str:
        """Return the introduction of the record."""
        return (
            "Questions after NIST SP 800-226 and deployment registries, in our words, answered from the card and the "
            f"ledger of this table and from the properties of dither; {self.unanswered} are left to the steward. It is "
            "a record, not legal advice."
        )


def _document(item: Item) -> dict[str, str | None]:
    """Return a question as a JSON object."""
    return {"question": item.question, "answer": item.answer or None, "source": item.source, "hint": item.hint or None}


def deployment_page(record: Deployment, title: str) -> str:
    """Render the record as an HTML page."""
    sections = [
        sheet.section(part.title, sheet.facts([(item.question, item.text, item.source) for item in part.items]))
        for part in record.sections
    ]
    return sheet.page(title, sheet.paragraph(record.note), *sections)


def deployment(card: Card, ledger: Ledger | None, version: str) -> Deployment:
    """Build the record of a card's table from card and ledger; without a ledger nothing was spent yet."""
    entries = [] if ledger is None else [*ledger.history(card.name)]
    sections = (
        Section("The promise", tuple(_promise(card, ledger, entries))),
        Section("How it is kept", tuple(_algorithms(card, entries))),
        Section("What it rests on", tuple(_foundations(card, ledger, entries))),
        Section("For a registry of deployments", tuple(_registry(card, version, entries))),
    )
    return Deployment(card.name, sections)


def _promise(card: Card, ledger: Ledger | None, entries: list[Entry]) -> Iterable[Item]:
    """Yield the questions about parameters, unit, spending and composition.

    ``ledger`` is None where the card has none yet; ``entries`` are its history. Each item is a question, its answer,
    who knows the answer and, for an answer that only the steward knows, a hint.
    """
    unit = next((table.unit for table in card.private_tables.values() if table.unit), None)
    who = f"one person: all rows with one value of {unit}" if unit else "one row: each row is a person"
    neighbors = "those that differ by the addition or removal of all rows of one such unit; their number is not public"
    limits = _limits(card, ledger)
    stated = "; ".join(f"{name}: {limit}" for name, limit in limits)
    changes = [entry for entry in entries if entry.kind == "limit" and entry.body.get("signed_by")]
    signed = [f"{entry.at[:10]}, signed by {entry.body['signed_by']}: {entry.body['reason']}" for entry in changes]
    yield Item("What is the unit of privacy?", who, CARD)
    hint = "under several names one person is protected once for each, and under a shared name several are one"
    yield Item("Does each person have exactly one value of the unit?", "", STEWARD, hint)
    yield Item("Which data sets are neighbors?", neighbors, DITHER)
    yield Item("What are the lifetime parameters of all answers together?", stated, LEDGER if ledger else CARD)
    yield Item("What has been spent so far?", _spent(card, ledger), LEDGER)
    yield Item("Is the budget ever reset?", "no: there is no reset, no renewal and no refund", DITHER)
    yield Item("Was a limit changed, by whom and why?", "; ".join(signed) or "no", LEDGER)
    yield Item("What do the parameters mean for a person?", _meaning(limits[0][1] if limits else None), DITHER)
    yield Item("What is promised to several people together?", GROUPS, DITHER)
    yield Item("May answers be processed further?", POST_PROCESSING, DITHER)
    hint = "how sensitive they are, what the answers are for"
    yield Item("Why are these parameters right for these data?", "", STEWARD, hint)


def _limits(card: Card, ledger: Ledger | None) -> list[tuple[str, Guarantee]]:
    """Return the limits with the names of their accounts, the table's or each person's first; from the ledger if
    there is one."""
    accounts = [] if ledger is None else ledger.accounts(card.name)
    ranks = {"dataset": 0, "people": 1}
    accounts = sorted(accounts, key=lambda account: ranks.get(account.kind, 2))
    result = [(str(account).split(":")[0], account.limit) for account in accounts]
    if ledger is None:
        result = [("the table", card.budget), ("each person", card.each_person), ("each analyst", card.each_analyst)]
    return [(name, limit) for name, limit in result if limit is not None]


def _spent(card: Card, ledger: Ledger | None) -> str:
    """Return the spending on the table so far, as text; private where people have accounts."""
    if ledger is None:
        return "nothing: there is no ledger yet"
    accounts = [account for account in ledger.accounts(card.name) if account.kind == "dataset"]
    if all(account.limit is None for account in accounts):
        return "counted for each person, and private"
    return "; ".join("nothing" if account.spent is None else str(account.spent) for account in accounts)


def _meaning(limit: Guarantee | None) -> str:
    """Return a sentence on what a limit means for one person; empty without a limit."""
    if limit is None:
        return ""
    if isinstance(limit, ZCDP):
        return "zero-concentrated differential privacy; to_approx(delta) states it as ε and δ"
    factor = math.ceil(math.exp(min(float(limit.exact[0]), 700.0)) * 10) / 10
    rest = "" if isinstance(limit, PureDP) else f", plus a probability of at most δ = {float(limit.exact[1]):g}"
    return (
        f"any conclusion about a person from all answers is at most e^ε = {factor:,.1f} times as likely as "
        f"if that person were not in the data{rest}"
    )


def _algorithms(card: Card, entries: list[Entry]) -> Iterable[Item]:
    """Yield the questions about noise, bounds, groups, errors and bias."""
    rows, in_groups = _limit(card.max_rows, "row"), _limit(card.max_groups, "group")
    limits = f"{rows} in each of {in_groups}, unless a question says less"
    columns = {name: column for table in card.private_tables.values() for name, column in table.columns.items()}
    listed = ", ".join(name for name, column in columns.items() if column.keys is not None) or "none"
    bounded = ", ".join(name for name, column in columns.items() if column.bounds or column.period) or "none"
    groups = f"listed in the card: {listed}; others are shown by a private threshold only, which costs δ"
    error = (
        "stated with every answer: as a ± of its noise (95 %), or in ranks; what limits leave out is a bias beside it"
    )
    exact = "yes: it is drawn exactly, on a public lattice"
    bits = "the operating system; what is drawn from a seeded source is refused by the ledger"
    yield Item("How is one person's influence bounded?", f"inside the database, on whole numbers: {limits}", CARD)
    yield Item("Which noise was used?", ", ".join(_noises(entries)), LEDGER, "nothing was asked yet")
    yield Item("Is the noise safe against attacks on floating point?", exact, DITHER)
    yield Item("Where does the randomness come from?", bits, DITHER)
    yield Item("How are several answers composed?", _composition(card), CARD)
    yield Item("How are groups chosen?", groups, CARD)
    yield Item("Which columns have public bounds?", bounded, CARD)
    hint = "from outside of the data: a form, a law, a list"
    yield Item("Where do bounds and keys come from?", "", STEWARD, hint)
    yield Item("What is known about the error of answers?", error, DITHER)
    yield Item("What bias do the algorithms add?", BIAS, DITHER)
    yield Item("Whose answers are less accurate?", SMALL_GROUPS, DITHER)
    hint = "also for small groups, whom a wrong number may harm most; how readers learn what a ± is"
    yield Item("Is the error small enough for every group that matters?", "", STEWARD, hint)


def _limit(limit: int | str, what: str) -> str:
    """Return a contribution limit of the card as text: a number of rows or groups, or that each question chooses it."""
    if limit == "auto":
        return f"a number of {what}s that each question chooses privately"
    return f"at most {limit} {what}(s)"


def _noises(entries: list[Entry]) -> list[str]:
    """Return the kinds of noise that the charges state, sorted."""
    names: set[str] = set()
    for entry in entries:
        if entry.kind != "charge":
            continue
        try:
            release = json.loads(entry.body.get("asked", "{}")).get("release", {})
            names |= {str(name) for name in release.get("noise", [])}
        except (ValueError, AttributeError, TypeError):
            continue
    return sorted(names)


def _composition(card: Card) -> str:
    """Return how the costs of several answers are added up, as text."""
    valid = "valid for adaptively chosen questions"
    if card.filter == "advanced":
        return f"by a privacy filter with the advanced bound (Whitehouse, Ramdas, Rogers and Wu 2023), {valid}"
    return f"by addition, in exact arithmetic, {valid}"


def _foundations(card: Card, ledger: Ledger | None, entries: list[Entry]) -> Iterable[Item]:
    """Yield the questions about trust, access, side channels and data collection.

    Answers follow from the ``card``, from the ``ledger`` (None where there is none yet, otherwise it is verified) and
    from the ``entries`` of its history.
    """
    accounts = [] if ledger is None else ledger.accounts(card.name)
    analysts = sum(account.kind == "analyst" and bool(account.name) for account in accounts)
    incidents = sum(entry.kind == "incident" for entry in entries)
    verified, receipt = "not yet: there is no ledger", ""
    if ledger is not None:
        verified = f"{ledger.verify().entries} entries, verified when this record was made"
        receipt = str(ledger.head)
    trust = "central: the holder of the rows and the ledger is trusted; analysts are not"
    yield Item("What is the trust model?", trust, DITHER)
    yield Item("What is the query model?", QUERY_MODEL, DITHER)
    yield Item("Who holds the rows, and who can read them?", "", STEWARD, "names, roles and systems")
    hint = "encryption at rest and on the way, backups, logs, who can change the card or reach the key of the ledger"
    yield Item("How is access to the rows and the ledger controlled?", "", STEWARD, hint)
    yield Item("Who may ask?", "", STEWARD, "who gets answers, and under which terms")
    yield Item("How many analysts have an account of their own?", str(analysts), LEDGER)
    yield Item("Were there errors while rows were read?", str(incidents) if incidents else "none recorded", LEDGER)
    yield Item("Is the history of the budget complete?", verified, LEDGER)
    yield Item("What is the last receipt?", receipt, LEDGER, "there is one after the first answer")
    yield Item("Which side channels remain?", SIDE_CHANNELS, DITHER)
    yield Item("How was the implementation checked?", EVIDENCE, DITHER)
    yield Item("Who else has checked it?", "", STEWARD, "an independent review, if there was one")
    hint = "consent, notice, retention, deletion"
    yield Item("How were the data collected, and what do people know?", "", STEWARD, hint)
    hint = "what was collected but is not needed, who sees it before it is protected, and when it is deleted"
    yield Item("What does collecting the data expose?", "", STEWARD, hint)
    yield Item("Were data released before, outside of this ledger?", "", STEWARD, "their cost has to be added")


def _registry(card: Card, version: str, entries: list[Entry]) -> Iterable[Item]:
    """Yield the fields that public registries of deployments ask for."""
    days = sorted(entry.at[:10] for entry in entries if entry.kind == "charge")
    kinds = {PureDP: "pure (ε)", ZCDP: "zero-concentrated (ρ)"}
    limit = card.budget or card.each_person
    variant = "" if limit is None else kinds.get(type(limit), "approximate (ε, δ)")
    yield Item("Name of the deployment", card.name, CARD)
    yield Item("Curator and contact", "", STEWARD)
    yield Item("Purpose", "", STEWARD, "what is published, for whom, since when")
    yield Item("Kind of release", "answers to questions, or published tables, from one budget", DITHER)
    yield Item("Number of releases paid for", str(len(days)), LEDGER)
    yield Item("First and last release", f"{days[0]} to {days[-1]}" if days else "", LEDGER, "nothing was asked yet")
    yield Item("Variant of differential privacy", variant, CARD, "a budget has to be stated")
    yield Item("Software", f"dither {version}", DITHER)
    yield Item("Where it is described", "", STEWARD, "an address, if there is one")
