"""The practice agent: an interactive program that behaves like a coding agent, without a model.

It imports only the standard library and this folder, and few modules, so that it starts fast.
"""

VERSION = "0.1"
