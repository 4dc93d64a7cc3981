"""The way back to Hive, and giving it up."""
