"""The report's figures: each a function from result tables to a matplotlib Figure."""
