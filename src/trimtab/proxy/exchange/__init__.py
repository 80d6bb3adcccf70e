"""One proxied request, from its head until the client has its answer.

``exchange`` says what it is; ``answering`` reads, fits, sends and answers it, one ``provider_call``
after another; ``untouched`` passes on what is not fitted.
"""
