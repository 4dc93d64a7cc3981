"""Manifests and manifest lists: the content of a snapshot, read into columns."""
