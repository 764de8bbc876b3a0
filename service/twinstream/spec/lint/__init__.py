"""What a comparison file amounts to."""
