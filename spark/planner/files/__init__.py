"""Data and delete files as the bridge is given them."""
