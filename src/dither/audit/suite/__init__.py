"""The subjects of ``dither audit``, the known-broken suite, and the runner."""
