"""Lists of articles as search tools return them: how they are read, ranked and shortened."""
