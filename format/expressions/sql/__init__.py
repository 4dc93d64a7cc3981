"""The parser of predicates written in SQL."""
