"""Manifests and manifest lists: what is in a snapshot, read into columns."""
