"""Where `doxa` begins. It imports nothing before an interruption can be told in one line."""


def main() -> int:
    """Import the program and run it; a signal before it is there ends as it does later, and after it without a word."""
    try:
        import signal

        from doxa_cli.interrupts import raise_on_signals

        with raise_on_signals():
            from doxa_cli.app import main as run
        code = run()
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        return code
    except KeyboardInterrupt:
        _say(b"doxa: interrupted\n")
        return 130
    except SystemExit as end:
        _say(b"doxa: ended by a signal\n")
        return int(end.code or 0)


def _say(words: bytes) -> None:
    import os

    os.write(2, words)
