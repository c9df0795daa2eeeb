"""The practice agent: an interactive program that behaves like a coding agent, without a model.

It stands alone: it imports nothing of mam outside this folder and only the
standard library, and what it imports is chosen for a short start.
"""

VERSION = "0.1"
