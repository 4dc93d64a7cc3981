"""Views of a catalog."""
