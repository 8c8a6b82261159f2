"""The report: the rules that judge the article's claims, its tables, and the templates."""
