"""What every room may use: errors, events, files, paths, settings, wording. Knows none of them."""
