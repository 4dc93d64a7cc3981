"""How the wheel is built: setuptools, and the jars it must not lack."""
