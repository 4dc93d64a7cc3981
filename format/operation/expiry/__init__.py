"""The expiration of snapshots, and the files that go with them."""
