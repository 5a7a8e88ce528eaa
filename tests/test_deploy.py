"""The files for running the server: the example configuration is one, and the unit gives nothing away."""

from __future__ import annotations

import configparser
import tomllib
from dataclasses import fields
from pathlib import Path

from dither.server import machine
from dither.server.config import Config, read_config

DEPLOY = Path(__file__).parents[1] / "deploy"


def unit():
    parser = configparser.ConfigParser(strict=False, interpolation=None, comment_prefixes=("#",))
    parser.optionxform = str
    parser.read(DEPLOY / "dither.service", encoding="utf-8")
    return parser["Service"]


def test_the_example_configuration_is_read(tmp_path):
    config = read_config(str(tmp_path), str(DEPLOY / "dither-server.toml"), environment={})
    assert config.cookies_are_secure
    assert config.is_local
    assert not config.single_steward
    stated = tomllib.loads((DEPLOY / "dither-server.toml").read_text(encoding="utf-8"))
    defaults = {item.name: item.default for item in fields(Config)}
    others = {"public_url", "trusted_proxies"}
    assert {name: value for name, value in stated.items() if value != defaults[name]}.keys() == others


def test_no_secret_is_in_an_example():
    for path in DEPLOY.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "oidc_client_secret =" not in text
        assert "://dither:" not in text


def test_the_unit_stops_the_server_and_not_its_workers():
    service = unit()
    assert service["KillMode"] == "mixed"
    assert int(service["TimeoutStopSec"]) >= Config(folder=".").time_limit + 30


def test_all_that_the_unit_gives_is_enough(tmp_path):
    """The limits of the unit against those that the server computes from them; the configuration fits, and so does one
    without a limit of its own."""
    service = unit()
    config = read_config(str(tmp_path), str(DEPLOY / "dither-server.toml"), environment={})
    memory = {"G": 1 << 30, "M": 1 << 20}[service["MemoryMax"][-1]] * int(service["MemoryMax"][:-1])
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/dither.service\n")
    group = tmp_path / "sys/fs/cgroup/dither.service"
    group.mkdir(parents=True)
    (group / "memory.max").write_text(f"{memory}\n")
    for stated in (config, Config(folder=".")):
        each = machine.worker_memory_mb(stated, tmp_path)
        assert each >= 2048
        processes = stated.processes * (stated.workers + 1)
        assert (each * processes + stated.processes * machine.SERVER_MB) << 20 <= memory
    assert machine.most_connections(config, 100, int(service["LimitNOFILE"])) == machine.MOST_CONNECTIONS
    assert (service["Type"], service["WatchdogSec"]) == ("notify", "60")
    assert "AF_UNIX" in service["RestrictAddressFamilies"]  # how the server says that it is alive


def test_the_unit_is_hardened():
    service = unit()
    for name in (
        "NoNewPrivileges",
        "ProtectHome",
        "PrivateTmp",
        "PrivateDevices",
        "RestrictSUIDSGID",
        "LockPersonality",
    ):
        assert service[name] == "true"
    assert service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == ""
    assert service["User"] == "dither"
    assert service["LimitCORE"] == "0"
    assert service["ReadWritePaths"] == "/var/lib/dither"


def test_the_image_runs_as_nobody_in_particular():
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    assert text.index("USER dither") < text.index("CMD ")
    assert "STOPSIGNAL SIGTERM" in text
