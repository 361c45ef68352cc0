"""TRAINING: from nets, learners and data to beliefs: one at a time, or many as one program."""
