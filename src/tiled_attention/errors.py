"""What a step raises when its user can mend the matter."""


class StepError(Exception):
    """A step cannot do its work on this machine, for a reason its user can mend."""
