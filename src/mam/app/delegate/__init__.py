"""Delegating a job to an agent: starting it, giving it its task, and seeing to it until it has ended."""
