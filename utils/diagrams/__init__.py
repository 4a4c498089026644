"""What a kernel's run looks like: pictures and tables of the learner's own accesses."""
