"""Many made-up histories in a short time: stories, mutations, five ways to write them, a judge.

``python tests/soak/run.py`` tries them by the million;
tests/property/test_soak.py tries a part of them.
"""
