"""The version that generated files carry."""

VERSION = "0.1.0"
