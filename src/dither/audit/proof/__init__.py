"""Certificates: the worst-case privacy loss of a mechanism, computed from the law that it draws."""
