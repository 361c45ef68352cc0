"""Where `doxa` begins. It imports nothing before an interruption can be told in one line."""


def main() -> int:
    """Import the program and run it; Ctrl-C before it is there ends as it does later, and after it without a word."""
    try:
        import signal

        from doxa_cli.interrupts import delay_interrupts_during_imports

        with delay_interrupts_during_imports():
            from doxa_cli.app import main as run
        code = run()
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        return code
    except KeyboardInterrupt:
        import os

        os.write(2, b"doxa: interrupted\n")
        return 130
