"""What several test files share; a test file imports this package and no other test file."""
