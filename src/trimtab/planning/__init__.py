"""What is shown instead of what: lines, levels, drops, and the smallest form."""
