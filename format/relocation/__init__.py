"""Tables brought to another location: every absolute path in their metadata is rewritten."""
