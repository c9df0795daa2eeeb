"""Run the command line: python -m mam."""

from mam.surfaces.cli.main import main

raise SystemExit(main())
