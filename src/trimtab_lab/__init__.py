"""The laboratory of trimtab: what measures and judges it.

``replay`` plays recorded conversations, ``testing`` has a strict provider and suites of laws,
``batch`` fits whole corpora.  It uses ``trimtab``; nothing in ``trimtab`` needs it.
"""
