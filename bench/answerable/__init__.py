"""Answerable: which planted facts can still be found in what a policy sends.

``python bench/answerable`` prints the table of docs/benchmark.md.  Worlds are generated, the
reader is a program, and nothing here shares code with what decides in trimtab.
"""
