"""One picture a module: `draw(scene)` returns a page, a title, a caption and its words."""
