"""Matching: keeps the unmatched events, and finds the partner of each new event among them."""
