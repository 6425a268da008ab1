"""FairAll: fair decision making under selective labels."""

__version__ = "0.1.0"
