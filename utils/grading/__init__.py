"""What an exercise's answer is worth: notebooks under nbval, points, submissions."""
