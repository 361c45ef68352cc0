"""Tests run side by side, two processes on two cores: one thread each."""

import signal

import torch

# A shell's background job starts with Ctrl-C ignored, and so would every program that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

torch.set_num_threads(1)
