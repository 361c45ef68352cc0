"""What `doxa fit` can be told, in words: read by the library, and by the command line before torch is there."""
