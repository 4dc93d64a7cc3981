"""Object stores: buckets of objects under keys, where folders are only a way to write keys."""
