"""Logs and events of a fit, and sizes of a request."""
