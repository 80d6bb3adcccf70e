"""Readers of what agents and gateways write: session logs, logs of requests, corpora."""
