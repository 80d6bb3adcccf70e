"""The neutral request between two formats: its types, one reader and one writer for all formats."""
