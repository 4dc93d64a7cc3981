"""Object stores: buckets of objects under keys, where folders are only prefixes of keys."""
