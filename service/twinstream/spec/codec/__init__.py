"""From a value to its canonical form, and the fast ways there."""
