"""Ways to tell a person: one module each."""
