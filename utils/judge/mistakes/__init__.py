"""What a wrong kernel may have computed instead, tried one after the other; see hypotheses."""
