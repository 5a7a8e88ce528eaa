"""What happens on the way: connections that break, redirects, pages of proxies, certificates, and the token."""

from __future__ import annotations

import datetime
import ipaddress
import os
import pickle
import ssl
import traceback

import pyarrow as pa
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import dither as dp
from client.fake_server import TOKEN, fake_server
from dither.client import transport as transports
from dither.client.transport import Token, parse
from dither.errors import DitherError, InvalidArgument, WrongType
from support import refuses

COUNT = "SELECT COUNT(*) AS n FROM data"


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(transports, "_PAUSES", (0.0, 0.0, 0.0))
    with dp.open(pa.table({"age": [30, 40] * 50}), budget=dp.PureDP(10)) as table, fake_server(table) as (fake, url):
        fake.url = url
        yield fake


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["drop", "lose"])
@pytest.mark.parametrize("options", [{}, {"key": "mine"}, {"again": True}])
def test_a_question_whose_connection_breaks_is_charged_once(fake, fault, options):
    with dp.connect(fake.url, token=TOKEN) as table:
        fake.faults = [fault, fault]
        answer = table.sql(COUNT).release(epsilon=1, **options)
        assert fake.work["paid"] == 1
        assert fake.work["ask"] == (1 if fault == "drop" else 3)
        keys = {headers.get("idempotency-key") for method, _, headers in fake.seen if method == "POST"}
        assert len(keys) == 1
        assert answer.columns == ("n",)


def test_a_break_at_any_request_of_a_question(fake):
    for place in range(1, 4):  # the question, and both times that the client looks how it stands
        fake.waiting = ["waiting", "answered"]
        with dp.connect(fake.url, token=TOKEN) as table:
            fake.faults = [None] * (place - 1) + ["lose"]
            first = table.sql(COUNT).release(epsilon=1, key=f"k{place}")
            assert table.sql(COUNT).release(epsilon=1, key=f"k{place}") == first
    assert fake.work["paid"] == 3


def test_a_server_that_is_gone_is_an_error_in_words(fake):
    table = dp.connect(fake.url, token=TOKEN)
    fake.faults = ["drop"] * transports.ATTEMPTS
    with refuses(dp.ServerUnavailable, "charged once", hiding=[TOKEN]):
        table.sql(COUNT).release(epsilon=1)
    assert fake.work["ask"] == 0
    with refuses(dp.ServerUnavailable, hiding=[TOKEN]):
        dp.connect("http://127.0.0.1:9/", token=TOKEN)


def test_a_redirect_is_not_followed(fake):
    table = dp.connect(fake.url, token=TOKEN)
    fake.faults = [(307, b"", {"Location": "http://127.0.0.1:9/elsewhere"})]
    with refuses(dp.ServerUnavailable, "redirect", hiding=[TOKEN]):
        table.sql(COUNT).explain(epsilon=1)


@pytest.mark.slow
@pytest.mark.parametrize("body", [b"<html>", b"", b"[]", b'{"type": "about:blank"}', b"{" * 9999, b"\xff"])
def test_the_page_of_a_proxy_is_no_answer(fake, body):
    table = dp.connect(fake.url, token=TOKEN)
    fake.faults = [(502, body, {})]
    with refuses(dp.ServerUnavailable, "502"):
        table.sql(COUNT).explain(epsilon=1)
    fake.faults = [(200, body, {})]
    with refuses(dp.DitherError):
        table.sql(COUNT).release(epsilon=1)


def test_a_server_without_room_is_asked_again_when_it_says(fake):
    table = dp.connect(fake.url, token=TOKEN)
    fake.faults = [(429, b"", {"Retry-After": "0"}), (503, b"", {"Retry-After": "0"})]
    assert table.sql(COUNT).release(epsilon=1).columns == ("n",)
    fake.faults = [(429, b"", {"Retry-After": "soon"})]
    with refuses(dp.ServerUnavailable, "429"):
        table.sql(COUNT).explain(epsilon=1)


def test_the_token_is_nowhere_to_be_seen(fake, monkeypatch):
    table = dp.connect(fake.url, token=TOKEN)
    assert TOKEN not in repr(vars(table)) + repr(vars(table.backend)) + repr(Token(TOKEN))
    fake.faults = [(307, b"", {})]
    try:
        table.sql(COUNT).explain(epsilon=1)
    except dp.ServerUnavailable as error:
        shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
        assert TOKEN not in shown.replace("token=TOKEN", "")
    with refuses(dp.WrongType, hiding=[TOKEN]):
        pickle.dumps(Token(TOKEN))
    for wrong in ("", "two words", "line\nbreak", "x" * 5000, "ä"):
        with refuses(dp.InvalidArgument, "token"):
            dp.connect(fake.url, token=wrong)
    with refuses(dp.WrongType, "token"):
        dp.connect(fake.url, token=5)  # type: ignore[arg-type]


def test_the_token_of_the_environment(fake, monkeypatch):
    monkeypatch.setenv("DITHER_TOKEN", TOKEN)
    assert isinstance(dp.connect(fake.url), dp.Table)
    with refuses(dp.AccessDenied):
        dp.connect(fake.url, token="another")
    monkeypatch.delenv("DITHER_TOKEN")
    with refuses(dp.AccessDenied, "DITHER_TOKEN"):
        dp.connect(fake.url)


def test_a_forked_process_opens_a_connection_of_its_own(fake):
    table = dp.connect(fake.url, token=TOKEN)
    table.sql(COUNT).release(epsilon=1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            os.write(write, str(table.sql(COUNT).release(epsilon=1).replayed).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as out:
        assert out.read() == "True"
    assert table.sql(COUNT).release(epsilon=1).replayed


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate of our own for 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dither test")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(built.public_bytes(serialization.Encoding.PEM))
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(secret)
    return folder


def test_certificates_are_verified(certificate, monkeypatch):
    monkeypatch.setattr(transports, "_PAUSES", (0.0, 0.0, 0.0))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    with dp.open(pa.table({"age": [30] * 9}), budget=dp.PureDP(1)) as table, fake_server(table, context) as (fake, url):
        with refuses(dp.ServerUnavailable, "certificate", hiding=[TOKEN]):
            dp.connect(url, token=TOKEN)
        assert not fake.seen
        with refuses(dp.ServerUnavailable, "certificate"):  # the certificate is for 127.0.0.1
            dp.connect(url.replace("127.0.0.1", "localhost"), token=TOKEN, ca_file=str(certificate / "cert.pem"))
        with dp.connect(url, token=TOKEN, ca_file=str(certificate / "cert.pem")) as connected:
            assert connected.sql(COUNT).release(epsilon=1).columns == ("n",)
    with refuses(dp.InvalidArgument, "ca_file"):
        dp.connect(url, token=TOKEN, ca_file=str(certificate / "key.pem"))
    with refuses(dp.InvalidArgument, "ca_file"):
        dp.connect(url, token=TOKEN, ca_file=str(certificate / "none.pem"))


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
    address, name = parse(url)
    assert (str(address), name) == (shown, table)


def test_a_table_that_is_named_leaves_the_path_to_the_server():
    address, name = parse("https://host/dither", "visits")
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
        parse(url)


def test_a_password_in_an_address_is_refused_and_not_shown():
    for url in ("https://ann:secret-word@host/", "https://ann:secret-word@host:port/", "https://ann:secret-word@h/?a"):
        with refuses(InvalidArgument, "url", hiding=["secret-word"]):
            parse(url)


def test_plain_http_goes_to_this_machine_only():
    for url in ("http://host/", "http://127.0.0.1.example.org/", "http://10.0.0.1/", "http://localhost.example.org/"):
        with refuses(InvalidArgument, "https://"):
            parse(url)
        assert not parse(url, allow_http=True)[0].secure


def test_other_types_are_refused():
    with refuses(WrongType, "url"):
        parse(None)  # type: ignore[arg-type]
    assert issubclass(WrongType, DitherError)
