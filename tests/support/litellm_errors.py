"""The refusal that LiteLLM raises, without LiteLLM."""

from __future__ import annotations


class BadRequestError(Exception):
    """As LiteLLM raises it."""

    status_code = 400

    def __init__(self, message: str, code: str = "context_length_exceeded") -> None:
        super().__init__(message)
        self.message = message
        self.body = {"error": {"message": message, "code": code}}
