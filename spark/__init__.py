"""Spark SQL on icecomb tables."""
