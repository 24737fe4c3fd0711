"""Pages: where they come from, what they are called, how they are cut and decoded."""
