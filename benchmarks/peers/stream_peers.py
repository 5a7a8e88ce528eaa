"""The error of running sums with jax-privacy's optimized buffers, in its own environment.

    python -m venv .venv-jax && .venv-jax/bin/pip install jax-privacy==2.0.0
    .venv-jax/bin/python benchmarks/peers/stream_peers.py

It is not in ``requirements.txt``, since jax would change what the other peers are measured with. The figures are those
of ``benchmarks/stream.py``: the largest root mean squared error at unit noise, for one participation and three buffers.
"""

from __future__ import annotations

import time
from importlib.metadata import version

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

from jax_privacy.matrix_factorization import buffered_toeplitz  # noqa: E402  after the precision is set

BUFFERS = 3


def error(column: np.ndarray) -> float:
    """By the definition, from the coefficients alone."""
    inverse = np.zeros(column.size)
    inverse[0] = 1 / column[0]
    for k in range(1, column.size):
        inverse[k] = -(column[1 : k + 1] @ inverse[:k][::-1]) / column[0]
    return float(np.linalg.norm(column) * np.linalg.norm(np.cumsum(inverse)))


def main() -> None:
    """Optimize the buffers for each horizon."""
    print(f"jax-privacy {version('jax-privacy')}, jax {version('jax')}", flush=True)
    for n in (365, 1024):
        start = time.process_time()
        loss = buffered_toeplitz.LossFn.build_closed_form_single_participation(n=n)
        blt, _ = buffered_toeplitz.optimize_loss(loss, num_buffers=BUFFERS, max_optimizer_steps=300)
        value = error(np.asarray(blt.toeplitz_coefs(n)))
        print(f"{n} steps, {BUFFERS} buffers: {value:.4f}, {time.process_time() - start:.1f} CPU s", flush=True)


if __name__ == "__main__":
    main()
