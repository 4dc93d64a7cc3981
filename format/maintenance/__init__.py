"""Maintenance of tables: plans of what to rewrite, and the rewriting itself."""
