"""Words with an order that everybody knows: answers, amounts, sizes, grades, bands of age or income.

A scale is a row of steps from the least to the greatest; a step is one or several words for the same. Levels are on a
scale if each of them is one of its steps, and no two are the same.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Sequence

from anyorder.variables.counted_levels import (
    by_number_in_front,
    by_numbered_step,
    by_pluses,
    by_roman_number,
    by_season,
    by_stars,
)
from anyorder.variables.month_names import month_of

_SCALES = """
strongly disagree|totally disagree|completely disagree; disagree|tend to disagree; somewhat disagree|slightly disagree|\
mildly disagree; neutral|neither agree nor disagree|neither|undecided|unsure; somewhat agree|slightly agree|\
mildly agree; agree|tend to agree; strongly agree|totally agree|completely agree
very dissatisfied|extremely dissatisfied; dissatisfied|unsatisfied; somewhat dissatisfied|slightly dissatisfied; \
neutral|neither satisfied nor dissatisfied; somewhat satisfied|slightly satisfied; satisfied; very satisfied|\
extremely satisfied
very unlikely|extremely unlikely; unlikely; somewhat unlikely; neutral|possible|neither likely nor unlikely; \
somewhat likely; likely; very likely|extremely likely
not at all important|unimportant|not important; slightly important|of little importance; moderately important|\
somewhat important; important; very important; extremely important
very negative; negative; neutral|mixed; positive; very positive
never; almost never|very rarely; rarely|seldom; occasionally|sometimes; often|frequently|regularly; \
usually|very often|most of the time; almost always; always
never; less than monthly; yearly|annually|once a year; quarterly; monthly|once a month; fortnightly|biweekly; \
weekly|once a week; daily|every day; hourly
not at all; a little|slightly|a little bit; somewhat|moderately; quite a bit|very|very much; extremely|completely
none|zero|nil|no; very low|minimal|negligible; low; low-medium|medium-low; medium|moderate|mid|average|normal; \
medium-high|high-medium; high; very high|severe; extreme|critical|urgent
lowest; low; medium; high; highest
low; normal; high; urgent; critical|immediate
trivial; minor; moderate|normal|medium; major; critical|severe; blocker
none; mild; moderate; severe; very severe|critical
terrible|awful|very bad|very poor; bad|poor; fair|below average; average|ok|okay|so-so; good|above average; \
very good|great; excellent|outstanding|exceptional
poor; fair; good; very good; excellent
po; fa; ta; gd; ex
needs improvement|unsatisfactory|below expectations|does not meet expectations; partially meets expectations; \
meets expectations|satisfactory; exceeds expectations|above expectations; \
outstanding|far exceeds expectations|greatly exceeds expectations
fail; pass; merit; distinction
a0; a1; a1+; a2; a2+; b1; b1+; b2; b2+; c1; c1+; c2
very easy; easy; medium|moderate|intermediate; hard|difficult; very hard|very difficult; expert
beginner|novice|entry|basic; elementary; intermediate|medium; advanced; proficient; expert|professional|master
intern|trainee; entry level|entry-level; junior|associate; mid|mid-level|intermediate; senior; lead|staff; principal; \
manager; director; vp|vice president; executive|c-level
freshman; sophomore; junior; senior
extra extra small|xxs|2xs; extra small|xs|x-small; small|s; medium|m|med; large|l; extra large|xl|x-large|extra-large; \
xxl|2xl|xx-large; xxxl|3xl|xxx-large; 4xl|xxxxl; 5xl
tiny; small; medium|mid-size|midsize; large|big; huge|giant|enormous
short; medium|average; long|tall
thin|slim; normal; thick
light; medium; heavy
slow; medium|normal; fast; very fast
cold; cool; mild; warm; hot
dry; moist; wet
young; middle-aged|middle aged; old|elderly
infant|baby; toddler; child; teenager|teen|adolescent; adult; senior|elderly
bronze; silver; gold; platinum; diamond
free; basic|starter; standard|plus; premium|pro|professional; enterprise|ultimate
economy; premium economy; business; first
3rd class|third class; 2nd class|second class; 1st class|first class
1st|first; 2nd|second; 3rd|third; 4th|fourth; 5th|fifth; 6th|sixth; 7th|seventh; 8th|eighth; 9th|ninth; 10th|tenth
no education|none|no schooling|preschool; primary|primary school|elementary|elementary school; \
middle school|lower secondary; some high school; high school|secondary|secondary school|high school graduate|hs-grad|\
high school diploma|upper secondary|hs; some college|some-college; associate|associate degree|associates|\
associate's degree; bachelor|bachelors|bachelor's|bachelor degree|bachelor's degree|undergraduate|college|\
college graduate; master|masters|master's|master degree|master's degree|graduate|postgraduate; professional degree; \
doctorate|phd|ph.d.|doctoral|doctor
jan; feb; mar; apr; may; jun; jul; aug; sep|sept; oct; nov; dec
january; february; march; april; may; june; july; august; september; october; november; december
mon; tue|tues; wed; thu|thur|thurs; fri; sat; sun
monday; tuesday; wednesday; thursday; friday; saturday; sunday
januar|jänner; februar; märz; april; mai; juni; juli; august; september; oktober; november; dezember
jan; feb; mär|mrz; apr; mai; jun; jul; aug; sep; okt; nov; dez
montag; dienstag; mittwoch; donnerstag; freitag; samstag|sonnabend; sonntag
janvier; février; mars; avril; mai; juin; juillet; août; septembre; octobre; novembre; décembre
lundi; mardi; mercredi; jeudi; vendredi; samedi; dimanche
enero; febrero; marzo; abril; mayo; junio; julio; agosto; septiembre; octubre; noviembre; diciembre
lunes; martes; miércoles; jueves; viernes; sábado; domingo
morning; noon|midday; afternoon; evening; night
spring; summer; autumn|fall; winter
q1; q2; q3; q4
nie; sehr selten; selten; manchmal|gelegentlich; oft|häufig; meistens|sehr oft; immer
keine|kein; sehr gering|sehr niedrig; niedrig|gering|tief; mittel|mäßig; hoch; sehr hoch
klein; mittel; groß|gross; sehr groß
sehr schlecht|ungenügend; schlecht|mangelhaft; ausreichend; mittel|befriedigend; gut; sehr gut
stimme überhaupt nicht zu|stimme gar nicht zu|trifft gar nicht zu|trifft nicht zu; stimme nicht zu|\
trifft eher nicht zu; stimme eher nicht zu; teils teils|teils/teils|neutral|weder noch; stimme eher zu|trifft eher zu; \
stimme zu|trifft zu; stimme voll zu|stimme voll und ganz zu|trifft voll zu|trifft voll und ganz zu
sehr unzufrieden; unzufrieden|eher unzufrieden; teils teils|teils/teils|neutral|weder noch; \
zufrieden|eher zufrieden; sehr zufrieden
sehr unwahrscheinlich; unwahrscheinlich|eher unwahrscheinlich; neutral|teils/teils; \
wahrscheinlich|eher wahrscheinlich; sehr wahrscheinlich
unwichtig|völlig unwichtig; eher unwichtig; teils/teils|neutral; eher wichtig|wichtig; sehr wichtig
leicht; mittel|mittelschwer; schwer; sehr schwer
kein abschluss|ohne abschluss; hauptschule|hauptschulabschluss; realschule|realschulabschluss|mittlere reife; \
fachhochschulreife|fachabitur; abitur; bachelor; master|diplom; promotion
très insatisfait; insatisfait|plutôt insatisfait; neutre|ni satisfait ni insatisfait; satisfait|plutôt satisfait; \
très satisfait
très mauvais; mauvais; moyen|passable; bon; très bon|excellent
muy insatisfecho; insatisfecho; neutral|ni satisfecho ni insatisfecho; satisfecho; muy satisfecho
muy improbable; improbable; neutral; probable; muy probable
pequeño; mediano; grande
petit; moyen; grand; très grand
jamais; rarement; parfois|quelquefois; souvent; toujours
faible|bas; moyen; élevé|haut|fort; très élevé
pas du tout d'accord; pas d'accord|plutôt pas d'accord; neutre|ni d'accord ni pas d'accord; d'accord|plutôt d'accord; \
tout à fait d'accord
nunca; rara vez|casi nunca; a veces; a menudo|casi siempre; siempre
muy bajo; bajo; medio; alto; muy alto
muy malo; malo; regular; bueno; muy bueno
totalmente en desacuerdo|muy en desacuerdo; en desacuerdo; neutral|ni de acuerdo ni en desacuerdo; de acuerdo; \
totalmente de acuerdo|muy de acuerdo
zdecydowanie nie; raczej nie; trudno powiedzieć|ani tak ani nie; raczej tak; zdecydowanie tak
nigdy; bardzo rzadko; rzadko; czasami|czasem; często; bardzo często; zawsze
bardzo niski|bardzo niskie; niski|niskie; średni|średnie; wysoki|wysokie; bardzo wysoki|bardzo wysokie
poniedziałek; wtorek; środa; czwartek; piątek; sobota; niedziela
"""

_GRADE = re.compile(r"([A-G])(\+{0,3}|-)")
_RATING = re.compile(r"(AAA|AA|A|BBB|BB|B|CCC|CC|C|D)([+-]?)")
_AMOUNT = r"(?:\d{1,3}(?:[.,]\d{3})+|\d+(?:[.,]\d{1,2})?)"
_BELOW = (
    r"(?i:<=?|≤|under |below |less than |fewer than |up to |younger than |unter |bis zu |bis |weniger als |moins de |"
    r"jusqu'à |menos de |hasta )"
)
_OVER = (
    r"(?i:(?:and|or|und|oder|et|ou|y|o) (?:over|above|more|older|up|mehr|älter|darüber|plus|más|mas|mayor(?:es)?)|plus)"
)
_BAND = re.compile(
    rf"[^\d<>≤≥=+]{{0,12}}?(?P<below>{_BELOW})?\s?[$€£]?(?P<low>{_AMOUNT})\s?(?P<k>[kKM]?)"
    rf"(?:\s?(?:-|–|—|to|bis unter|bis|to under|à|a|\.\.)\s?[^\d<>]{{0,3}}(?P<high>{_AMOUNT})\s?(?P<high_k>[kKM]?))?"
    rf"(?:\s?(?:[^\W\d]{{1,8}} )?(?P<above>\+|{_OVER}))?\s?[^\d+]{{0,12}}"
)
_NONE = frozenset(("none", "no", "zero", "nil", "keine", "kein", "aucun", "ninguno"))
"""Words for 0 among counts such as 1, 2, 3+."""
MOST_COUNTS = 100
"""Up to here numbers and a band at their end (1, 2, 3+) are levels; beyond they are numbers, and a word among them."""
_ABOVE = re.compile(r"(?i:>=?|≥|over |above |more than |older than |über |mehr als |älter als |plus de |más de )")
_COUNTED = re.compile(r"(?P<count>\d+\+?)\s?(?P<noun>[^\W\d]{3,12})")


def in_known_order(levels: Sequence[str]) -> list[str] | None:
    """The levels from the least to the greatest, if they lie on a scale that is known; else None."""
    if len(levels) < 2:
        return None
    if days := by_day(levels):
        return days
    words = [_word(level) for level in levels]
    for steps in _steps() if len(set(words)) == len(words) else ():
        ranks = [steps.get(word) for word in words]
        if all(rank is not None for rank in ranks) and len(set(ranks)) == len(ranks):
            return [level for _, level in sorted(zip(ranks, levels, strict=True), key=lambda pair: pair[0] or 0)]
    for order in (_by_grade, by_stars, by_pluses, by_numbered_step, by_roman_number, by_number_in_front, by_season):
        if found := order(levels):
            return found
    return _by_band(levels)


_CACHE: list[dict[str, int]] = []


def _steps() -> list[dict[str, int]]:
    if not _CACHE:
        for line in _SCALES.strip().splitlines():
            steps: dict[str, int] = {}
            for rank, step in enumerate(line.split(";")):
                steps |= {_word(word): rank for word in step.split("|")}
            _CACHE.append(steps)
    return _CACHE


def _word(text: str) -> str:
    """The text without capitals, numbers before it ("3 - Neutral") and odd spaces."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("_", " ").strip()
    plain = re.sub(r"^\(?\d{1,2}\s?[-.:)=]\s*", "", plain)
    return re.sub(r"\s+", " ", plain).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").strip(" .!")


def loosely(text: str) -> str:
    """The text without capitals and odd spaces: levels of a scale that differ in these alone are one."""
    return " ".join(text.split()).casefold()


def _by_grade(levels: Sequence[str]) -> list[str] | None:
    """Grades (A-), credit ratings and energy labels (A++), the best first; letters alone are names of groups."""
    for pattern in (_GRADE, _RATING):
        found = [pattern.fullmatch(level.strip()) for level in levels]
        if not all(found) or not any(each and (each[2] or len(each[1]) > 1) for each in found):
            continue
        order = ("AAA", "AA", "A", "BBB", "BB", "B", "CCC", "CC", "C", "D", "E", "F", "G")
        ranks = [(-order.index(each[1]), each[2].count("+") - each[2].count("-")) for each in found if each]
        return [level for _, level in sorted(zip(ranks, levels, strict=True))]
    return None


def _by_band(levels: Sequence[str]) -> list[str] | None:
    """Bands that follow upon each other, such as <18, 18-24, 25-34, 65+; numbers too beside a band (0, 1, 2, 3+)."""
    counted = [_COUNTED.fullmatch(level.strip()) for level in levels]
    alike = all(counted) and len({each["noun"][:4].casefold() for each in counted if each}) == 1
    bands: list[tuple[float, float]] = []
    for level, each in zip(levels, counted, strict=True):
        band = _band(each["count"] if each and alike else level.strip())  # 1 Person, 2 Personen, 5+ Personen
        if band is None:
            return None
        bands.append(band)
    single = sum(low == high for low, high in bands)
    if single == len(levels) or (single and len(levels) > MOST_COUNTS):
        return None
    ordered = sorted(zip(bands, levels, strict=True))
    follows = all(one[0][1] <= other[0][0] for one, other in itertools.pairwise(ordered))
    return [level for _, level in ordered] if follows and len(levels) >= 3 else None


def _band(text: str) -> tuple[float, float] | None:
    if text.casefold() in _NONE:
        return 0.0, 0.0
    above = _ABOVE.match(text)
    found = _BAND.fullmatch(text[above.end() :] if above else text)
    if found is None:
        return None
    low = _amount(found["low"], found["k"])
    if found["below"]:
        return float("-inf"), low
    if above or found["above"]:
        return low, float("inf")
    if found["high"] is None:
        # Of numbers alone only bare ones are meant: "5 Elm Street" is no count.
        return (low, low) if found[0] == found["low"] + found["k"] else None
    high = _amount(found["high"], found["high_k"] or found["k"])
    if found["high_k"] and not found["k"] and low * SIGNS[found["high_k"]] < high:
        low *= SIGNS[found["high_k"]]  # 50-100k
    return (low, high) if low < high else None


def by_day(levels: Sequence[str]) -> list[str] | None:
    """Days of a year, in its order: 5-Mar, Dec 24."""
    days = [day_of_year(level) for level in levels]
    known = [day for day in days if day is not None]
    if len(known) < len(days) or len(set(known)) < len(known) or len(levels) < 2:
        return None
    return [level for _, level in sorted(zip(known, levels, strict=True))]


def day_of_year(text: str) -> tuple[int, int] | None:
    """The month and the day of a date without a year; None if this is none."""
    found = _DAY.fullmatch(text.strip())
    month = month_of(found["month"] or found["first"]) if found else None
    day = int(found["day"] or found["second"]) if found else 0
    return (month, day) if month is not None and 1 <= day <= 31 else None


_DAY = re.compile(
    r"(?P<day>\d{1,2})(?:\.|st|nd|rd|th)?[-/. ]\s?(?P<month>[^\W\d_]{3,9})\.?"
    r"|(?P<first>[^\W\d_]{3,9})\.?[-/. ](?P<second>\d{1,2})(?:st|nd|rd|th)?"
)


SIGNS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6}


def _amount(digits: str, sign: str) -> float:
    plain = re.sub(r"[.,](?=\d{3}(?:\D|$))", "", digits).replace(",", ".").rstrip(".")
    return float(plain) * SIGNS[sign]
