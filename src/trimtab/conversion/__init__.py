"""Converts a request from any of the six formats to any other, and lists what was lost.

``convert`` loads the converter and the formats on first use.
"""

from __future__ import annotations

from typing import Any

from trimtab.conversion.converted import Converted, Loss

__all__ = ["Converted", "Loss", "convert"]


def convert(
    request: Any,
    to: str = "bedrock",
    *,
    format: str | None = None,
    model: str | None = None,
    open_tail: bool = False,
) -> Converted:
    """The same conversation in another provider's format.

    ``request``: a body (dict), a bare list of messages, or JSON as str or bytes; never changed.
    ``to``: "openai-chat", "openai-responses", "anthropic", "bedrock", "gemini"
    or "gemini-interactions".  For Anthropic the newest version of its API is meant, which takes no
    sampling parameters: "anthropic:2023-06-01" keeps them.
    ``format``: what the request is in; None: detected.
    ``model``: the model it is for.  None: the request's own between formats of one provider, else
    no model is written.

    ``open_tail``: the last calls are just being run and have no results yet.

    What comes out is acceptable: roles are joined, results put behind their calls, and ids and
    names respelled where the target forbids them.  An id is respelled so that a conversion back
    finds it again, where there is room.  What source or target would refuse is repaired as
    ``repair`` does, and listed among notes and losses.  Payloads of images and documents stay
    base64 text.

    Raises InvalidRequest, InvalidSetting; NotAccepted for what cannot be repaired.
    """
    from trimtab.conversion.converter import (
        convert_request,
    )  # the formats are loaded when one is converted

    return convert_request(request, to, format, model, open_tail)
