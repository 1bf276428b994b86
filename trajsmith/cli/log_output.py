"""Log lines of the package on standard error, for `trajsmith -v` and `trajsmith -vv`."""

import logging
import sys

from trajsmith.records import escape_controls

LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _StandardError(logging.Handler):
    """Handler that looks up `sys.stderr` for each line, so that lines appear above a live progress display."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(escape_controls(self.format(record)) + "\n")


def configure_logging(verbosity: int) -> None:
    """Print log lines of trajsmith on standard error.

    Args:
        verbosity: 0 prints nothing beside warnings, 1 INFO, 2 or more DEBUG.
    """
    if not verbosity:
        return
    handler = _StandardError()
    handler.setFormatter(logging.Formatter(LINE, "%H:%M:%S"))
    logger = logging.getLogger("trajsmith")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.INFO if verbosity == 1 else logging.DEBUG)
