"""What a run did: hazards, traffic, every access of a kernel, seen on the emulator."""
