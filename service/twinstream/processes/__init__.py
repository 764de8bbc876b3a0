"""Processes: who runs the matchers, who stands by for them, and who shows what they say."""
