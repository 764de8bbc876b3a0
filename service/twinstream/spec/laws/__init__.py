"""What is refused in a comparison file, and why."""
