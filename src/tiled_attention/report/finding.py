"""What a rule finds about a claim: one of five verdicts and the sentence that it rests on."""

from dataclasses import dataclass

REPRODUCED = "reproduced"
PARTLY = "partly reproduced"
CONTRADICTED = "contradicted"
UNDECIDED = "undecided"
UNTESTABLE = "not testable here"


@dataclass(frozen=True)
class Finding:
    """What a rule found about one claim."""

    verdict: str
    evidence: str
