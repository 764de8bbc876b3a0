"""Load generators, benchmarks and their reports. Nothing in the product imports this package."""
