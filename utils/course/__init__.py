"""What is asked: exercises, their cases and gates. What a spec imports stands here."""

from utils.course.exercise import At, Exercise, Gate
from utils.course.precision import Precision

__all__ = ["MODELS", "At", "Exercise", "Gate", "Precision"]


def __getattr__(name: str) -> object:
    """MODELS on first use: it needs PyTorch, and who only wants to know an exercise does not."""
    if name == "MODELS":
        from utils.course.models import MODELS

        return MODELS
    raise AttributeError(f"module 'utils.course' has no attribute '{name}'")
