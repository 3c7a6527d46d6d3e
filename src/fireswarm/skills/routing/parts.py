"""Parts of an objective: the orders and questions that it joins, such as "count the words and tell Bob". Pure.

The lists were written before ``tests/packs/one_skill_objectives.yaml`` was measured, and chosen on its part
``chosen_on``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_JOINT = re.compile(
    r"[;&\n]|[.!?](?=\s|$)|,|\s[-\u2013\u2014]\s"
    r"|\b(?:as well as|in addition to|in addition|after that|apart from that|and|then|plus|also|afterwards?|finally"
    r"|additionally|besides|but|before|after which|while|followed by)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")

_FILLERS = """
additionally after afterwards again all also and automatically besides but by can cheers could finally first for good
hello hey hi i immediately just kindly lastly later like ll make may me need next now ok okay once only or please pls
plus plz quickly second so sure thank thanks that then to too us want we well will would you
"""
FILLERS = frozenset(_FILLERS.split())
"""Words before an order that do not belong to it, as in "and then please also"."""

_ORDERS = """
add alert announce answer append apply approve arrange ask assign attach back backup book build buy calculate call
cancel cc change check choose clean clear click close commit compare compile complete compose compress compute connect
contact convert copy correct count create cut decide delegate delete deliver deploy describe design determine develop
discuss display distribute divide download draft draw drop duplicate edit email enter erase estimate evaluate examine
execute explain export extract fetch file fill filter find finish fix format forward generate guess help highlight
hire identify implement import improve inform insert inspect install integrate interpret invite judge keep launch let
list load locate mail make mark measure merge message migrate modify move name notify open optimise optimize order
organise organize paint paraphrase paste pay phone pick ping plan play plot point post predict prepare present print
prioritise prioritize process produce proofread propose prove publish pull push put query quote rank rate read rebuild
recommend record reduce refactor reformat refund register reject release remember remind remove rename reorder repair
repeat rephrase replace reply report request reschedule resend reserve reset resize resolve respond restart restore
retry return review revise rewrite rotate round run save say scale scan schedule score search select sell send set
share ship show shrink sign simplify solve sort speak spell split start stop store submit subscribe suggest sum
summarise summarize support swap switch tag take talk teach tell test text tidy train transcribe transfer transform
translate transmit try tweet undo uninstall unsubscribe unzip update upgrade upload use validate verify visit wait
warn watch wrap write zip
"""
_ORDER_WORDS = frozenset(_ORDERS.split())
"""Verbs that begin an order."""

_OBJECT = "it them him her me us this that these those the a an my our your his their all each every both everything"
_OBJECTS = frozenset(_OBJECT.split())
"""Words behind an unknown word that show it to be a verb, as in "notify the editor"."""

_NO_VERBS = """
about above across after against all along although am among an any anything are around as at be because been before
behind being below beneath between both but by despite did do does down during each either else even every everything
except few for from had has have he how if in including inside instead into is it its less like many may me might more
most much must my near neither never no none nor not now of off on onto or our out outside over past per she should
since some still such than that the their them there these they this those though through throughout till to today
tomorrow tonight toward towards under unless until up upon us versus via was we were what whatever when where whereas
whether which while who whole whose why with within without yes yet you your
"""
_NO_VERB_WORDS = frozenset(_NO_VERBS.split())

_QUESTION = "what why how is are was were does do did should can could would will who when where which whose"
_ASKING = frozenset(_QUESTION.split())
_RELATIVE = frozenset({"which", "who", "whose", "where", "when"})
"""Words that begin a question, or a clause that belongs to the words before it."""

_QUOTED = re.compile(r"""(?<!\w)["'`\u201c][^"'`\u201c\u201d]{2,400}+["'`\u201d](?!\w)""")


@dataclass(frozen=True)
class Clause:
    """A part of an objective, as an order with its verb, a question or neither; ``core`` has no "and then please"."""

    text: str
    order: str = ""
    question: bool = False

    @property
    def core(self) -> str:
        """The text without the words before an order."""
        words = self.text.split()
        while words and _bare(words[0]) in FILLERS:
            words = words[1:]
        return " ".join(words)


def parts_of(objective: str) -> list[Clause]:
    """Split *objective* where a further order or question begins; other joined words stay with the part before."""
    masked = _QUOTED.sub(lambda match: "\u2022" * len(match.group()), objective)
    starts = [0, *(match.end() for match in _JOINT.finditer(masked))]
    ends = [*(match.start() for match in _JOINT.finditer(masked)), len(masked)]
    found: list[Clause] = []
    first = 0
    for start, end in zip(starts, ends, strict=True):
        part = _kind_of(masked[start:end], asks="?" in masked[end : end + 1])
        if not _WORD.search(masked[start:end]) and found:
            continue
        if not found or part.order or part.question:
            found.append(Clause(objective[start:end].strip(), part.order, part.question))
            first = start
        else:
            found[-1] = Clause(objective[first:end].strip(), found[-1].order, found[-1].question)
    return found


def _bare(word: str) -> str:
    return word.lower().strip(".,;:!?")


def _kind_of(fragment: str, *, asks: bool) -> Clause:
    """Return the fragment as an order with its verb, as a question, or as neither."""
    words = [word.replace("\u2019", "'") for word in _WORD.findall(fragment.lower())]
    while words and (words[0] in FILLERS or words[0].endswith("ly")) and not _begins_question(words, asks=asks):
        words = words[1:]
    if not words:
        return Clause(fragment)
    head = _without_gerund(words[0])
    if _begins_question(words, asks=asks):
        return Clause(fragment, question=True)
    if head in _ORDER_WORDS and not (len(words) > 1 and words[1] in {"of", "is", "are"}):
        return Clause(fragment, order=head)
    known_object = len(words) > 1 and words[1] in _OBJECTS
    return Clause(fragment, order=head if known_object and words[0] not in _NO_VERB_WORDS else "")


def _begins_question(words: list[str], *, asks: bool) -> bool:
    """Return True for "what is it about"; a request such as "could you count" is an order."""
    if words[0] not in _ASKING or len(words) < 2 or words[1] in {"you", "we", "i"}:
        return False
    return asks or words[0] not in _RELATIVE


def _without_gerund(word: str) -> str:
    """Return the verb of "checking", or *word* itself."""
    if not word.endswith("ing") or len(word) < 6:
        return word
    stem = word.removesuffix("ing")
    return next((verb for verb in (stem, stem + "e", stem[:-1]) if verb in _ORDER_WORDS), word)
