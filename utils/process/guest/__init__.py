"""What runs in processes apart, most of them in boxes in which there is this folder alone.

Nothing of `utils` is imported here.
"""
