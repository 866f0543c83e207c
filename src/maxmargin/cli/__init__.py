"""The command line: every option of a fit is a parameter of the estimator."""

__all__ = ["main"]


def main() -> None:
    """Run the command that the arguments of the process name."""
    try:
        from .signals import replaced_handlers

        with replaced_handlers():
            from .app import main as run

            run()
    except KeyboardInterrupt:  # before a handler is in its place, or between two of them
        from .signals import INTERRUPTED

        raise SystemExit(INTERRUPTED) from None
