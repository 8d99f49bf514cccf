"""The jobs of the command line: build, compile, verify, bench. A handful of named passes each."""
