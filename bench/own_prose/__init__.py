"""Own prose: whether what the user wrote survives a cut, while what the user pasted gives way.

``python bench/own_prose`` prints the tables.  Rules are sentences of people in thirteen languages,
worlds are generated, and of trimtab only ``fit`` is used: nothing here shares code with what
decides there.
"""
