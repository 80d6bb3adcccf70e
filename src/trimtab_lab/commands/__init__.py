"""The laboratory's commands of ``trimtab``: replay, bill, conform, batch, check --session."""
