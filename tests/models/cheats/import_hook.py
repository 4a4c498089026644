# rejected: changes its surroundings
import sys


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None


sys.meta_path.insert(0, Finder)


class ModelNew(Honest):
    pass
