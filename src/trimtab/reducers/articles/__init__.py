"""Lists of articles as search tools return them: reading, ranking and rewriting them."""
