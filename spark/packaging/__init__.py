"""The wheel's build: setuptools, and the jars that a wheel must contain."""
