"""Tables that need no server: a folder is the table, and the newest numbered file its state."""
