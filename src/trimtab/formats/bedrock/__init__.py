"""Amazon Bedrock Converse: how it is read, what it refuses, how that is repaired."""
