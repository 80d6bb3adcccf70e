"""Retries after a refusal: learning the limit, fitting smaller, repairing and sending again."""
