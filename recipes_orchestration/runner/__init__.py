"""Runs steps on pages, here or on a far side."""
