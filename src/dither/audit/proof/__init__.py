"""Certificates: the worst-case privacy loss of a mechanism, computed from the distribution that it samples."""
