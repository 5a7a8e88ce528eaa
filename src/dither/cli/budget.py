"""``dither budget`` and ``dither report``: the accounts and history of a ledger, and the record of a deployment."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import dither
from dither.cli import printing
from dither.cli.files import (
    LEDGER_ENDINGS,
    OutputFiles,
    check_receipt,
    is_url,
    of_card,
    read_card,
    receipt_file,
    refuse_on_server,
    with_receipt_file,
)
from dither.cli.options import NUMBER, BudgetOptions, ReportOptions
from dither.cli.printing import echo
from dither.errors import InvalidArgument, LedgerError, LedgerMissing, LedgerRolledBack
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.ledger import Account, Entry, Ledger, Receipt
from dither.ledger.accounts import HEADER, Limit, promised
from dither.ledger.chain import keep_receipt, read_receipt
from dither.ledger.charging import DEFAULT_MAX_INCIDENTS, Closure
from dither.tables.card.model import Card
from dither.tables.table import Table


@dataclass(frozen=True)
class LedgerTarget:
    """The ledger of a command, the dataset in it (None: all), and the card with its path if a card was passed."""

    ledger: str
    dataset: str | None
    path: str | None = None
    card: Card | None = None

    @property
    def files(self) -> set[Path]:
        """Return the files of the card or ledger, which are never overwritten."""
        if self.card is not None and self.path is not None:
            return of_card(self.path, self.card)
        return set() if "://" in self.ledger else {Path(self.ledger + ending) for ending in LEDGER_ENDINGS}

    @property
    def receipt(self) -> Path | None:
        """Return the file with the last receipt; None without a card."""
        return receipt_file(self.path, self.card) if self.card is not None and self.path is not None else None


def run(named: str, options: BudgetOptions) -> None:
    """Print the accounts and whatever the options ask for, after changing a limit or reopening a dataset."""
    if is_url(named):
        for name in ("history", "verify", "export", "receipt", "plot", "limit", "reopen", "dataset"):
            refuse_on_server("--set" if name == "limit" else f"--{name}", getattr(options, name))
        _print_remote(named)
        return
    target = _target(named, options.dataset)
    if options.plot is not None and target.dataset is None:
        raise InvalidArgument("--plot", "a dataset to plot", "none", "pass --dataset NAME as well")
    with OutputFiles(force=options.force, protected=target.files) as outputs:
        outputs.add("--export", options.export, ("json", "csv"))
        outputs.add_plot(options.plot)
        _change(target, options)
        with _open(target, options.receipt, read_only=True) as ledger:
            _show(ledger, target, options, outputs)


def _print_remote(url: str) -> None:
    """Print the caller's remaining budget on a server, for one table or for each."""
    connected = dither.connect(url)
    with connected:
        tables = [connected] if isinstance(connected, Table) else [connected[name] for name in connected.tables]
        rows = [(table.card.name, str(table.backend.remaining(table))) for table in tables]
    printing.table(("table", "left"), rows)


def report(options: ReportOptions) -> None:
    """Print the deployment record of a card as Markdown, or write it as .md, .html or .json.

    ``options.deployment`` is the path of the card; ``options.output`` is the file to write, whose ending chooses the
    format, and None prints Markdown. The ledger is left out where the card names none or it does not exist yet.
    """
    from dither.present import html
    from dither.present.pages.deployment import deployment

    path, output = str(options.deployment), options.output
    card = read_card(path)
    with OutputFiles(force=options.force, protected=of_card(path, card)) as outputs, ExitStack() as opened:
        outputs.add("--output", output, ("md", "html", "json"))
        ledger = None
        if card.ledger is not None and ("://" in card.ledger or Path(card.ledger).exists() or _kept(path, card)):
            ledger = opened.enter_context(_open(LedgerTarget(card.ledger, card.name, path, card), None, read_only=True))
        record = deployment(card, ledger, dither.__version__)
        if output is None:
            echo(record.markdown())
            return
        ending = output.rpartition(".")[2].lower()
        text = html(record) if ending == "html" else record.to_json() if ending == "json" else record.markdown()
        outputs.write("--output", lambda room: Path(room).write_text(text, encoding="utf-8"))
        echo(f"record written to {output}; {record.unanswered} questions are left to the steward")


def _kept(path: str, card: Card) -> bool:
    """Return whether a receipt is kept beside a card, so that a missing ledger must have been lost."""
    return read_receipt(receipt_file(path, card)) is not None


def _show(ledger: Ledger, target: LedgerTarget, options: BudgetOptions, outputs: OutputFiles) -> None:
    """Print accounts and incidents, and the history, a verification, an export or a plot as the options ask.

    ``target`` has the dataset (None: all), and ``outputs`` the files that were checked before anything is printed.
    """
    dataset = target.dataset
    accounts = ledger.accounts(dataset)
    printing.table(HEADER, [account.cells for account in accounts])
    _incidents(ledger, accounts, target)
    if options.history:
        _history(ledger, dataset, accounts)
    if options.verify:
        result = ledger.verify()
        echo(f"verified: {result.entries} entries, every account")
    outputs.write("--export", lambda room: ledger.export(room, dataset))
    if options.export is not None:
        echo(f"history written to {options.export}")
    if options.plot is not None and dataset is not None:
        outputs.write_plot(lambda axes: ledger.plot(dataset, axes=axes))
        echo(f"plot written to {options.plot}")
    echo(f"receipt {ledger.head}")


def _target(named: str, dataset: str | None) -> LedgerTarget:
    """Return the ledger that an argument names: that of a card, or the argument itself."""
    if not named.endswith(".toml"):
        return LedgerTarget(named, dataset)
    card = read_card(named)
    if card.ledger is None:
        raise InvalidArgument("ledger", "the path or address of a ledger", "none", "state it in the card")
    return LedgerTarget(card.ledger, dataset or card.name, named, card)


def _open(target: LedgerTarget, receipt: str | None, *, read_only: bool) -> Ledger:
    """Open the ledger of a command; refuse one without the entry of the passed or the kept receipt.

    ``receipt`` is the text that the user passed (None: none); the kept one is in the receipt file of ``target``. A
    ledger without the entry of a receipt is an older copy, in which charges are missing. With ``read_only`` nothing can
    be charged or changed.
    """
    given = None if receipt is None else Receipt.read(receipt)
    kept = None if target.receipt is None else read_receipt(target.receipt)
    try:
        if target.card is not None and "://" not in target.ledger and not Path(target.ledger).exists():
            raise _no_ledger(kept)
        ledger = dither.ledger.open(target.ledger, receipt=given, create=False, read_only=read_only)
        try:
            if kept is not None:
                ledger.expect(kept)
        except BaseException:
            ledger.close()
            raise
    except LedgerError as error:
        if target.card is None or target.path is None:
            raise
        raise with_receipt_file(error, target.path, target.card, kept) from error
    return ledger


def _no_ledger(kept: Receipt | None) -> LedgerError:
    """Return the error for a missing ledger: it was lost if a receipt was kept, else not created yet."""
    if kept is not None:
        fix = "restore it from its latest copy"
        return LedgerRolledBack("ledger", "the one that the receipt was given for", "none", fix)
    return LedgerMissing("ledger", "a ledger", "none yet", "ask a first question with dither query, which starts it")


def _change(target: LedgerTarget, change: BudgetOptions) -> None:
    """Change a limit or reopen a dataset, if the options ask for it.

    ``target`` has the ledger and the dataset; ``change`` has the options: the new ``limit``, whose it is (``analyst``,
    ``each_person``, or the whole dataset's), whether to reopen, and the signature with its reason. Without a limit and
    without reopening, nothing is done, and options that need one of them are refused.
    """
    if change.limit is None and not change.reopen:
        for option, given in (("--analyst", change.analyst), ("--each-person", change.each_person or None),
                              ("--signed-by", change.signed_by), ("--reason", change.reason)):  # fmt: skip
            if given is not None:
                raise InvalidArgument(option, "--set or --reopen beside it", "neither", f"leave {option} out")
        return
    if target.dataset is None:
        raise InvalidArgument("--dataset", "the dataset to change", "none", "pass --dataset NAME")
    limit = None if change.limit is None else _limit(change.limit)
    if change.signed_by is None or change.reason is None:
        raise InvalidArgument(
            "--signed-by",
            "who signs the change and for what reason",
            "one of the two at most",
            "pass --signed-by NAME --reason WHY",
        )
    if change.analyst is not None and change.each_person:
        raise InvalidArgument("--analyst", "an analyst or each person", "both", "change one after the other")
    if target.card is not None and target.path is not None:
        check_receipt(target.path, target.card)
    with _open(target, change.receipt, read_only=False) as ledger:
        signed = {"signed_by": change.signed_by, "reason": change.reason}
        if limit is not None:
            _check_new_limit(ledger, target.dataset, limit, change)
            ledger.change_limit(target.dataset, limit, analyst=change.analyst, each_person=change.each_person, **signed)
            whose = f"analyst {change.analyst}" if change.analyst else "each person" if change.each_person else "all"
            echo(f"new limit of {target.dataset} for {whose}: {limit}; past spending is unchanged")
            _remind(target, limit, change)
        if change.reopen and not ledger.incident_count(target.dataset):
            echo(f"{target.dataset} is open; nothing was changed")
        elif change.reopen:
            ledger.reopen(target.dataset, **signed)
            echo(f"{target.dataset} is reopened; the incidents stay in the history")
        if target.card is not None and target.card.receipt is not None:
            keep_receipt(target.card.receipt, ledger.head)


def _check_new_limit(ledger: Ledger, dataset: str, limit: Guarantee, change: BudgetOptions) -> None:
    """Refuse a new limit that is impossible or probably a mistake, before the ledger is changed.

    ``change`` states whose limit it is: an analyst's, each person's, or the whole dataset's. Refused are a limit for a
    kind of account that the dataset does not have and, without ``change.force``, a limit that drops the present delta
    or is below the spending.
    """
    result = {(account.kind, account.name): account for account in ledger.accounts(dataset)}
    whole, people = result["dataset", ""], result.get(("people", ""))
    if change.analyst is not None:
        account = result.get(("analyst", change.analyst))
    elif change.each_person:
        account = people
        if people is None:
            raise InvalidArgument(
                "--each-person", "a budget of each person", "the dataset's", "leave --each-person out"
            )
    else:
        account = whole
        if whole.limit is None:
            raise InvalidArgument(
                "--set", "whose limit", "no --each-person", "this card's budget is per person: pass --each-person"
            )
    if account is None or change.force:  # change_limit refuses a missing account
        return
    new = Limit.of(limit, account.filter)
    if isinstance(account.limit, ApproxDP) and not isinstance(limit, ApproxDP) and new.unit == account.unit:
        delta = float(account.limit.exact[1])
        raise InvalidArgument(
            "--set",
            f"a limit with a delta, as the one that holds ({account.limit})",
            f"{limit}, without one",
            f"add ,delta={delta:g}; --force drops it, and with it every question that costs a delta",
        )
    # account.spent is None for people, whose spending is private
    if account.spent is not None and new.unit == account.unit and not account.used.within(new.amount):
        raise InvalidArgument(
            "--set",
            f"at least what {account} has spent, {account.spent}",
            str(limit),
            "set a larger limit; --force sets this one, and nothing can be asked any more",
        )


def _remind(target: LedgerTarget, limit: Guarantee, change: BudgetOptions) -> None:
    """Remind the steward to state the new limit in the card: a card is refused while its budget differs from the
    ledger's.

    Nothing is printed without a card, for the limit of one analyst (which no card states), or where the card agrees.
    """
    card = target.card
    if card is None or change.analyst is not None:
        return
    stated = card.each_person if change.each_person else card.budget
    if stated is not None and stated != limit:
        echo(
            f"now state the new limit under [budget] in {target.path}: it still has {stated} and is refused until then"
        )


def _limit(text: str) -> Guarantee:
    """Parse a limit from the option --set.

    >>> _limit("epsilon=2"), _limit("epsilon=2, delta=1e-6"), _limit("rho=0.5")
    (PureDP(2), ApproxDP(2, 1e-06), ZCDP(0.5))
    """
    pairs = [tuple(piece.strip() for piece in part.partition("=")[::2]) for part in text.split(",")]
    kinds = {("epsilon",): PureDP, ("delta", "epsilon"): ApproxDP, ("rho",): ZCDP}
    kind: Any = kinds.get(tuple(sorted(name for name, _ in pairs)))
    if kind is None or not all(NUMBER.fullmatch(value) for _, value in pairs):
        expected = "epsilon=2, epsilon=2,delta=1e-6 or rho=0.5"
        raise InvalidArgument("--set", expected, "text of a different form", "pass --set epsilon=2")
    result: Guarantee = kind(**{name: float(value) for name, value in pairs})
    return result


def _incidents(ledger: Ledger, accounts: list[Account], target: LedgerTarget) -> None:
    """Print the datasets in ``accounts`` with incidents (errors while rows were read), and which are closed by them.

    The number of incidents that closes a dataset is that of the card of ``target``, else the default.
    """
    most = target.card.max_incidents if target.card is not None else DEFAULT_MAX_INCIDENTS
    for account in (account for account in accounts if account.kind == "dataset" and account.incidents):
        closure = Closure.of(ledger.incidents_by_analyst(account.owner), most)
        if closure.is_open:
            echo(f"{account.owner}: {account.incidents} incident(s) while rows were read; closed at {most}")
            continue
        whom = "" if closure.everybody else f" for {', '.join(closure.analysts)}"
        named = target.path or f"{target.ledger} --dataset {account.owner}"
        echo(
            f"{account.owner} is closed{whom} after {account.incidents} incidents (errors while rows were read). "
            f"Look into the incident log, then: dither budget {named} --reopen --signed-by NAME --reason WHY"
        )


def _history(ledger: Ledger, dataset: str | None, accounts: list[Account]) -> None:
    """Print the entries of a ledger's history, one per line, as they are read.

    ``dataset`` restricts them to one dataset, None prints all. ``accounts`` is only used for the width of the column
    with dataset names.
    """
    names = max((len(account.owner) for account in accounts), default=0)
    rows = (
        (entry.seq, entry.at[:19].replace("T", " "), entry.kind, entry.dataset, _details(entry), entry.key or "")
        for entry in ledger.history(dataset)
    )
    header = ("entry", "time (UTC)", "what", "dataset", "details", "key")
    printing.stream(header, rows, (6, 19, 8, max(7, names), 30, 0))


@lru_cache
def _cost(stated: str) -> str:
    """Return a cost as text from its JSON; cached, since many entries have equal costs."""
    return str(promised(json.loads(stated)))


def _details(entry: Entry) -> str:
    """Return the details of a history entry as text: a cost, a signature, new accounts, or the answered entry."""
    body = entry.body
    if entry.kind == "charge":
        return _cost(json.dumps(body["cost"]))
    if entry.kind == "answer":
        return f"answers entry {entry.charge}"
    if "signed_by" in body:
        return f"signed by {body['signed_by']}: {body['reason']}"
    if entry.kind == "open":
        return ", ".join(" ".join(part for part in account["account"] if part) for account in body["accounts"])
    return "" if entry.charge is None else f"of entry {entry.charge}"
