"""What values are, and when two of them are the same."""
