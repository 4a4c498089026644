"""The command `workbook`, called as a person calls it."""

from typer.testing import CliRunner

from utils import cli


def workbook(*words: str):
    """The exit code of a call and what it printed, as a person gets them."""
    done = CliRunner().invoke(cli.app, words)
    if done.exception and not isinstance(done.exception, SystemExit):
        try:
            cli.fail(done.exception)
        except SystemExit as stop:
            return stop.code, done.output + str(done.exception)
    return done.exit_code, done.output
