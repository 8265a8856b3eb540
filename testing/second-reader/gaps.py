"""Sequence numbers that a walk has passed over (FORMAT.md, 4.5)."""

MOST = 128


class Gaps:
    """Runs of numbers as [first, last, place]; the place is None when a defect has named them already."""

    def __init__(self):
        self.runs = []
        self.beyond = []

    def hold(self, number):
        return any(first <= number <= last for first, last, _ in self.runs)

    def open(self, first, last, place):
        if len(self.runs) < MOST:
            self.runs.append([first, last, place])
        else:
            self.beyond.append((first, last, place))

    def fill(self, number):
        """Takes a number out of the run that holds it."""
        for index, (first, last, place) in enumerate(self.runs):
            if first <= number <= last:
                del self.runs[index]
                if first < number:
                    self.runs.append([first, number - 1, place])
                if number < last:
                    self.open(number + 1, last, place)
                return

    def missing(self):
        """What never came and no defect has named."""
        named = (run for run in [*self.runs, *self.beyond] if run[2] is not None)
        return sorted(((first, last, place) for first, last, place in named), key=lambda run: (run[2], run[0]))
