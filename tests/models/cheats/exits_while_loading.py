# rejected: does not load
import sys

sys.exit(0)
