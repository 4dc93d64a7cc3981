"""Reports of health and of migration plans."""
