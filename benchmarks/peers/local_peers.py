"""Local protocols of dither's peers: a few thousand clients each, in microseconds a client and a report.

Run with the interpreter of an environment that has ``pure-ldp`` and ``multi-freq-ldpy``. Both draw from NumPy's
generator in floats, one client at a time; dither's figures are those of ``benchmarks/local.py``.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

K, EPSILON = 1024, 1.0


def timed(run):
    """CPU seconds, and the result."""
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def pure_ldp(people: int) -> None:
    """Unary encoding, local hashing, Hadamard response, count-mean sketch."""
    from pure_ldp.frequency_oracles.apple_cms import CMSClient, CMSServer
    from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    def sketch():
        server = CMSServer(EPSILON, 1024, 1024)
        return CMSClient(EPSILON, server.get_hash_funcs(), 1024), server

    def response():
        server = HadamardResponseServer(EPSILON, K)
        return HadamardResponseClient(EPSILON, K, server.get_hash_funcs()), server

    pairs = {
        "unary, optimized": lambda: (UEClient(EPSILON, K, use_oue=True), UEServer(EPSILON, K, use_oue=True)),
        "local hashing": lambda: (LHClient(EPSILON, K, use_olh=True), LHServer(EPSILON, K, use_olh=True)),
        "Hadamard response": response,
        "count-mean sketch": sketch,
    }
    for name, build in pairs.items():
        try:
            client, server = build()
            values = [i % K + 1 for i in range(people)]
            private, reports = timed(lambda client=client, values=values: [client.privatise(v) for v in values])
            estimate, _ = timed(lambda server=server, reports=reports: [server.aggregate(r) for r in reports])
            more, _ = timed(lambda server=server: server.estimate_all(range(1, K + 1)))
            show("pure-ldp", name, private, estimate + more, people)
        except Exception as error:  # a peer that fails is reported, not hidden
            print(f"  pure-ldp, {name}: {type(error).__name__}: {error}")


def multi_freq_ldpy(people: int) -> None:
    """Randomized response, unary encoding, local hashing, subset selection."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    tasks = {
        "randomized response": (lambda v: GRR_Client(v, K, EPSILON), lambda r: GRR_Aggregator_MI(r, K, EPSILON)),
        "unary, optimized": (lambda v: UE_Client(v, K, EPSILON, True), lambda r: UE_Aggregator_MI(r, EPSILON, True)),
        "local hashing": (lambda v: LH_Client(v, K, EPSILON, True), lambda r: LH_Aggregator_MI(r, K, EPSILON, True)),
        "subset selection": (lambda v: SS_Client(v, K, EPSILON), lambda r: SS_Aggregator_MI(r, K, EPSILON)),
    }
    for name, (client, server) in tasks.items():
        try:
            client(0)  # it compiles at the first call
            values = [i % K for i in range(people)]
            private, reports = timed(lambda client=client, values=values: [client(v) for v in values])
            server(reports)
            estimate, _ = timed(lambda server=server, reports=reports: server(reports))
            show("multi-freq-ldpy", name, private, estimate, people)
        except Exception as error:
            print(f"  multi-freq-ldpy, {name}: {type(error).__name__}: {error}")


def show(library: str, name: str, private: float, estimate: float, people: int) -> None:
    """One line."""
    print(
        f"  {library}, {name}: {1e6 * private / people:.1f} µs a client, {1e6 * estimate / people:.1f} µs a report",
        flush=True,
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(f"k = {K}, epsilon = {EPSILON}, {np.__version__=}")
    pure_ldp(2000)
    multi_freq_ldpy(2000)
