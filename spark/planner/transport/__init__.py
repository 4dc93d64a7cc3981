"""The loopback socket and its pages."""
