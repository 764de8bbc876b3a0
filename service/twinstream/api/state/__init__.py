"""What the API process knows of all comparisons."""
