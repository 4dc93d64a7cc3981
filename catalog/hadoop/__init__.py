"""Tables without a server: the folder is the table, the newest numbered file its state."""
