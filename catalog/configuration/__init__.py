"""Configuration of catalogs: arguments, environment, files."""
