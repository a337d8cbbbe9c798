"""The roads between processes; both ends of a road live in one file."""
