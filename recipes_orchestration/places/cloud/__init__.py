"""A provider's models as a place: batches and plain calls."""
