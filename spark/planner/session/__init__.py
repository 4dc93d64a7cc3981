"""Work that a procedure hands to the Spark session."""
