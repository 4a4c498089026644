"""Stub until the helper's lands."""


def safe_name(s):
    return s.replace("/", "_")


def write(made, folder):
    pass
