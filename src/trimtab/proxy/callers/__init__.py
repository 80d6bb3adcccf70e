"""The proxy's callers: access checks, and the session of each tenant."""
