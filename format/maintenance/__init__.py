"""Table maintenance: planning which files to rewrite, and rewriting them."""
