"""The plan of a migration: findings and the files to take over."""
