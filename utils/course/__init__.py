"""What is asked: exercises, their cases and gates. What a spec imports stands here."""

from utils.course.exercise import At, Exercise, Gate
from utils.course.models import MODELS

__all__ = ["MODELS", "At", "Exercise", "Gate"]
