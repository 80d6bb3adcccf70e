"""Conversations that are valid by the providers' newest documentation, and judges of their own.

Nothing here knows how the library reads or repairs a request: generators and provider models are
made from the providers' pages and SDK types, and import nothing of the library.  Only ``doors``,
``signals`` and the runners call it, as its users do.
"""
