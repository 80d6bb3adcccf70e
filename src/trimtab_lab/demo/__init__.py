"""``trimtab demo``: a recorded session that outgrows its window, played on this machine."""
