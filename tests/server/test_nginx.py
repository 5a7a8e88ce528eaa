"""``deploy/nginx.conf`` as it is, but for places and ports, in Debian's nginx, in front of a real server."""

from __future__ import annotations

import datetime
import ipaddress
import os
import re
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import httpx2 as httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from serving import PASSWORD, Running, fill

from support import eventually

ROOT = Path(__file__).parents[2]
HOST = "answers.example.org"
SMALL = {"DITHER_TICK": "0.05", "DITHER_WORKERS": "1", "DITHER_WARM": "false"}
AROUND = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/main.log;
events {{}}
http {{
    access_log {folder}/access.log; gzip on; gzip_types *; gzip_min_length 1;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    include {folder}/dither.conf;
}}
"""
"""What Debian's own nginx.conf has around what it includes: a log of all requests, and compression."""


def program() -> str:
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    unpacked = ROOT / ".venv" / "nginx" / "usr" / "sbin" / "nginx"
    if found is None and not unpacked.exists():
        pytest.fail("nginx is not installed: run make nginx, which unpacks Debian's or says how to install it")
    return found or str(unpacked)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def certificate(folder: Path) -> None:
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName(HOST), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - datetime.timedelta(days=1))
    builder = builder.not_valid_after(now + datetime.timedelta(days=1))
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signed = builder.sign(key, hashes.SHA256())
    (folder / "fullchain.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "privkey.pem").write_bytes(private)


class Proxy:
    """nginx with the file of ``deploy``, in which each of these texts is replaced."""

    def __init__(self, folder: Path, upstream: str, **replaced: str) -> None:
        folder.mkdir()
        certificate(folder)
        self.folder, self.tls, self.plain = folder, free_port(), free_port()
        text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
        places = {
            "listen 443": f"listen 127.0.0.1:{self.tls}", "listen 80": f"listen 127.0.0.1:{self.plain}",
            "http://127.0.0.1:8765": upstream, f"/etc/letsencrypt/live/{HOST}": str(folder),
            "/var/log/nginx/error.log": f"{folder}/error.log",
        } | replaced  # fmt: skip
        for old, new in places.items():
            assert old in text, old
            text = text.replace(old, new)
        (folder / "dither.conf").write_text(text)
        (folder / "nginx.conf").write_text(AROUND.format(folder=folder))
        self.command = [program(), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "main.log")]
        self.process: subprocess.Popen[bytes] | None = None

    def check(self) -> str:
        result = subprocess.run([*self.command, "-t"], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return result.stderr

    def __enter__(self) -> Proxy:
        self.process = subprocess.Popen(self.command)

        def listens() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, self.logs()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.tls)) == 0

        eventually(listens)
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process is not None
        self.process.terminate()
        self.process.wait(600)

    def client(self) -> httpx.Client:
        context = ssl.create_default_context(cafile=str(self.folder / "fullchain.pem"))
        address = f"https://127.0.0.1:{self.tls}"
        return httpx.Client(base_url=address, headers={"Host": HOST}, verify=context, timeout=600)

    def logs(self) -> str:
        return "".join(path.read_text(encoding="utf-8") for path in self.folder.glob("*.log"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Running(
        fill(tmp_path_factory.mktemp("behind")), DITHER_PUBLIC_URL=f"https://{HOST}",
        DITHER_TRUSTED_PROXIES="127.0.0.1", **SMALL,
    )  # fmt: skip
    assert running.process.stdout is not None
    running.address, running.link = re.search(
        r"(http://[^/]+)(/welcome/\S+)", running.process.stdout.readline()
    ).groups()
    yield running
    running.stop()


def test_it_serves_and_logs_no_link(server, tmp_path):
    proxy = Proxy(tmp_path / "nginx", server.address)
    assert "warn" not in proxy.check()
    with proxy, proxy.client() as client:
        page = client.get(server.link, headers={"Accept-Encoding": "gzip"})
        assert page.status_code == 200
        assert "content-encoding" not in page.headers
        assert page.headers["strict-transport-security"]
        token = re.search(r'name="csrf" value="(\w+)"', page.text).group(1)
        form = {"csrf": token, "name": "sam", "password": PASSWORD, "again": PASSWORD}
        done = client.post(server.link, data=form, headers={"Origin": f"https://{HOST}"})
        assert done.status_code == 303, done.text
        assert re.search(r"dither_session=.*; Secure", done.headers["set-cookie"])
        assert client.post("/sign-in", content=b"x" * 300_000).status_code == 413
        with httpx.Client(timeout=600) as plain:
            moved = plain.get(f"http://127.0.0.1:{proxy.plain}{server.link}", headers={"Host": HOST})
        assert (moved.status_code, moved.headers["location"]) == (301, f"https://{HOST}{server.link}")
        with Proxy(tmp_path / "down", f"http://127.0.0.1:{free_port()}") as nobody, nobody.client() as lost:
            assert lost.get(server.link).status_code == 502
            assert server.link not in nobody.logs()
    assert server.link not in proxy.logs()


def test_one_address_has_so_many_requests_under_way(server, tmp_path):
    with Proxy(
        tmp_path / "nginx", server.address, **{"limit_conn dither_address 100": "limit_conn dither_address 2"}
    ) as proxy:
        context = ssl.create_default_context(cafile=str(proxy.folder / "fullchain.pem"))
        begun = b"POST /sign-in HTTP/1.1\r\nHost: answers.example.org\r\nContent-Length: 10\r\n\r\nx"
        slow = []
        for _ in range(2):
            plain = socket.create_connection(("127.0.0.1", proxy.tls), 600)
            slow.append(context.wrap_socket(plain, server_hostname="127.0.0.1"))
            slow[-1].sendall(begun)
        with proxy.client() as client:
            eventually(lambda: client.get("/health").status_code == 429)
            for connection in slow:
                connection.close()
            eventually(lambda: client.get("/health").status_code == 200)
