"""What users and programs hand to Doxa, made up: tables, command lines, settings and results."""
