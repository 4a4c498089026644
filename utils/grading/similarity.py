def report(a):
    return []


def write(p, path):
    pass
