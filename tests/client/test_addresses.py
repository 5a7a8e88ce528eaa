"""Addresses of servers: HTTPS, or this machine; no password in them; the last part of the path is the table."""

from __future__ import annotations

import pytest

from dither.client import addresses
from dither.errors import DitherError, InvalidArgument, WrongType
from support import refuses


@pytest.mark.parametrize(
    ("url", "shown", "table"),
    [
        ("https://host", "https://host/", None),
        ("https://host/", "https://host/", None),
        ("HTTPS://Host:443/visits", "https://host/", "visits"),
        ("https://host:8443/dither/my%20visits/", "https://host:8443/dither/", "my visits"),
        ("http://127.0.0.1:8765/", "http://127.0.0.1:8765/", None),
        ("http://[::1]:8765/", "http://[::1]:8765/", None),
        ("http://localhost/visits", "http://localhost/", "visits"),
    ],
)
def test_addresses(url, shown, table):
    address, name = addresses.parse(url)
    assert (str(address), name) == (shown, table)


def test_a_table_that_is_named_leaves_the_path_to_the_server():
    address, name = addresses.parse("https://host/dither", "visits")
    assert (str(address), name) == ("https://host/dither/", "visits")


@pytest.mark.parametrize(
    "url",
    [
        "", "host", "visits.toml", "ftp://host/", "https://", "https:///visits", "https://host/?token=abc", "https://host/#a",
        "https://host:port/", "https://host/../visits", "https://ho\nst/", "javascript:alert(1)", "https://[::1/",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(url):
    with refuses(InvalidArgument, "url", hiding=["token=abc"]):
        addresses.parse(url)


def test_a_password_in_an_address_is_refused_and_not_shown():
    for url in ("https://ann:secret-word@host/", "https://ann:secret-word@host:port/", "https://ann:secret-word@h/?a"):
        with refuses(InvalidArgument, "url", hiding=["secret-word"]):
            addresses.parse(url)


def test_plain_http_goes_to_this_machine_only():
    for url in ("http://host/", "http://127.0.0.1.example.org/", "http://10.0.0.1/", "http://localhost.example.org/"):
        with refuses(InvalidArgument, "https://"):
            addresses.parse(url)
        assert not addresses.parse(url, allow_http=True)[0].secure


def test_other_types_are_refused():
    with refuses(WrongType, "url"):
        addresses.parse(None)  # type: ignore[arg-type]
    assert issubclass(WrongType, DitherError)
