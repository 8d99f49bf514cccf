"""Tools of the project itself; not part of the installed package."""
