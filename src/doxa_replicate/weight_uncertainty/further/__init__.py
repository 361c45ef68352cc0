"""What the document names and leaves for later: local noise on digits, scarce classes, other families, remedies."""
