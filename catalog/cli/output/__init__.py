"""Output of the commands: tables, JSON, progress, terminals."""
