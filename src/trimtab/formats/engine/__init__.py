"""What all formats share: what a format is, how a request is read as a transcript, groups of
messages, and events of streams."""
