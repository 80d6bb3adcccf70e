"""Extension of the site's reader of sources: our ``cached_property`` makes attributes, as that of
``functools`` does, and the pages show them so."""

from __future__ import annotations

import griffe

griffe.stdlib_decorators["trimtab.lazy.cached_property"] = {"cached", "property"}


class CachedProperties(griffe.Extension):
    """Nothing but the entry above."""
