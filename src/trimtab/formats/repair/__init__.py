"""The engine of repairs: what a rule is, how a table of rules is checked, and the rules that
several formats share."""
