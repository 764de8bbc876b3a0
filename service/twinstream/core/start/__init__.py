"""Start: decides from which event on the two sides are compared."""
