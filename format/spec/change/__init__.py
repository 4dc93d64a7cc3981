"""Changes of table metadata: requirements and updates."""
