"""Values, metrics and tasks that readers and writers share."""
