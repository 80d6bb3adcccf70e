"""Other people's measuring kits, run on trimtab and on what they are compared with."""
