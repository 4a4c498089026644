"""CUDA C++ on the CPU: headers that stand in for CUDA's, a runtime of fibres, a translator of text.

`translate/` makes C++ of a CUDA text, `build` says how it is compiled, `runtime/` runs it, watched
or not; `programs` does all of that for a whole program. `reports` puts hazards into words,
`traffic` adds up what lines cost, `symbols` finds the lines.
"""
