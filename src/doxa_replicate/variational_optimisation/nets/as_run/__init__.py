"""Nets that are searched for as the document's author did it, whatever of that the document says."""
