"""``python -m servetwin``."""

from servetwin.cli import main

main()
