"""The built-in operations, and how an operation is found by its name."""
