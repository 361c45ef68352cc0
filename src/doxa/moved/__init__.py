"""MOVED: names and modules by the addresses they had before, each with a warning that says where it is now."""
