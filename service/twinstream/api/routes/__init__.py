"""What is answered, and to whom."""
