"""Looks, adopts, lands and sends: what moves a batch of pages through a stage."""
