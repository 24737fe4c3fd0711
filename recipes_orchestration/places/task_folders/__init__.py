"""Task folders for places that take jobs: what goes there and what comes back."""
