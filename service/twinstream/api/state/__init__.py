"""The state of the API process: what it knows of all comparisons."""
