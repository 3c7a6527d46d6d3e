"""What skills, tools and capabilities take and return."""
