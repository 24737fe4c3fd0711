"""Hugging Face Jobs as a place."""
