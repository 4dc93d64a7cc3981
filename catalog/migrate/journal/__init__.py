"""The journal of a migration, and what it is compared with."""
