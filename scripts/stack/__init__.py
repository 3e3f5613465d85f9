"""The whole way from a looping agent to a page, on loopback and without containers."""
