"""Asked: does what somebody asks for by name survive a cut?

``python bench/asked`` prints a row a kind of content, compared with a head and tail of the same
size.  Contents are generated, the judge is a program, and nothing here shares code with what
decides in trimtab.
"""
