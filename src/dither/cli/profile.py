"""``dither profile``: show the newest profile of a card, forecast one, or buy one."""

from __future__ import annotations

import json
import shutil

from dither.cli.files import Outputs, is_url, of_card, open_remote, open_table, read_card
from dither.cli.guard import explaining_failures
from dither.cli.options import ProfileOptions
from dither.cli.printing import busy, echo, is_terminal, item, table
from dither.errors import InvalidArgument
from dither.present.text import two_digits
from dither.tables.card.profile import Profile
from dither.tables.codec import to_json
from dither.tables.planning.profile_plan import Kind, ProfilePlan, plan_profile

_WIDTH = 100
_MEASURED: dict[Kind, str] = {
    "people": "people by their number of rows",
    "total": "the number of people",
    "values": "people by value, in bins",
    "by_rows": "the same by rows per person",
    "whole": "how many values are whole numbers",
    "keys": "people by public key",
    "private_keys": "keys that are not public, by their number of people",
    "keys_per_person": "people by their number of different keys",
}


def run(path: str, options: ProfileOptions) -> None:
    """Show the newest profile where no cost is stated; otherwise forecast one, or buy it and show it.

    ``path`` is the file of a card or the address of a table on a server, whose profiles can only be shown here. A cost
    is ``options.epsilon`` or ``options.rho``; ``options.dry_run`` forecasts, at epsilon 1 where no cost is stated.
    """
    buys = options.epsilon is not None or options.rho is not None
    if is_url(path):
        if buys:
            fix = "have a steward buy it on the page of the table; without --epsilon the newest one is shown"
            raise InvalidArgument("--epsilon", "none for a table on a server", "one", fix)
        with open_remote(path) as remote:
            _show(remote.card.profile, path, options)
        return
    card = read_card(path)
    with Outputs(force=options.force, protected=of_card(path, card)) as outputs:
        outputs.add("--report", options.report, ("html", "htm"))
        if options.dry_run or not buys:
            with open_table(path, card=card, read_only=True) as opened:
                if not options.dry_run:
                    _show(opened.card.profile, path, options, outputs)
                    return
                epsilon = 1.0 if not buys else options.epsilon
                plan = plan_profile(opened.card, epsilon, delta=options.delta, rho=options.rho, **_columns(options))
                _print_forecast(plan)
                item(f"left: {opened.backend.remaining(opened)}", "")
            return
        with open_table(path, card=card, receipt=options.receipt) as opened:
            with explaining_failures(str(card.ledger), card.name, "profile"), busy("counting…"):
                profile = opened.profile(
                    options.epsilon,
                    delta=options.delta,
                    rho=options.rho,
                    analyst=options.analyst,
                    again=options.again,
                    force=options.yes,
                    **_columns(options),
                )
            _show(profile, path, options, outputs)
            if not options.json:
                item(f"left: {opened.backend.remaining(opened)}", "")


def _columns(options: ProfileOptions) -> dict[str, list[str]]:
    """Return the columns to describe and those to leave out, as keywords."""
    given = {"columns": options.columns, "without": options.without}
    return {
        name: [part.strip() for part in text.split(",") if part.strip()]
        for name, text in given.items()
        if text is not None
    }


def _show(profile: Profile | None, path: str, options: ProfileOptions, outputs: Outputs | None = None) -> None:
    """Print a profile as text or JSON, and write its page if ``options.report`` asks for it.

    ``profile`` is None where none was bought: the error says how to buy one for the card at ``path``. ``outputs`` is
    None where no file can be written.
    """
    if profile is None:
        fix = f"dither profile {path} --dry-run shows what one would show, --epsilon 1 buys it"
        raise InvalidArgument("profile", "a profile in the ledger", "none", fix)
    if outputs is not None and options.report is not None:
        from dither.present import write_html

        outputs.write("--report", lambda room: write_html(room, profile, "A private profile"))
    if options.json:
        echo(json.dumps(to_json(profile)))
        return
    width = min(shutil.get_terminal_size().columns, _WIDTH) if is_terminal() else _WIDTH
    echo(profile.text(width))


def _print_forecast(plan: ProfilePlan) -> None:
    """Print what the profile of a ``plan`` would measure, with the ± of each number in people, and its cost.

    The ± is 1.96 standard deviations of the noise, a 95 % interval of a normal law.
    """
    kinds = dict.fromkeys(part.kind for part in plan.parts)
    rows = [(_MEASURED[kind], f"± {two_digits(1.96 * plan.deviation(kind))}") for kind in kinds]
    table(["what", "each number, in people"], rows)
    echo()
    item(f"A bin is told from noise if it has about {two_digits(plan.people_seen)} people or more.", "")
    item(f"cost: {plan.guarantee}, once; from then on everything is planned with it for free", "")
