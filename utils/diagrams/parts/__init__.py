"""What the views are made of: the canvas, the scene, cells, time lines, words."""
