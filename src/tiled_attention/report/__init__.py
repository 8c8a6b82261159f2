"""The report: the article's figures, the rules that judge its claims, and the templates."""
