"""What conversations cost by the usage that was reported, and what they would have cost otherwise.

Figures come from logs that say what each model call was billed; what they don't say has no figure.
"""
