"""What leaves the package, as digests; see ``scripts/same_bytes.py``.

Nothing here imports trimtab before it is run, and little of it but what ``trimtab`` itself exports.
"""
