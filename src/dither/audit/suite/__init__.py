"""The subjects of ``dither audit``, the known-broken counterexamples, and the runner."""
