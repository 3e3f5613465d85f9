"""The options of a policy: what each takes, and how one table is laid over another."""
