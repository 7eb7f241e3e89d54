"""What the name of a column says about its cells, where the cells alone leave it open.

A name is taken apart into its words: ``dateOfBirth``, ``date_of_birth`` and ``Date of birth`` are one, and so are
``phone10`` and ``phone 10``. Words that German joins are known by their ends (Lieferdatum, Kundennummer).
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache


@cache
def words_of(name: str) -> str:
    """The words of a name, small and without accents, with a blank between any two."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    plain = unicodedata.normalize("NFKD", apart.replace("ß", "ss"))
    letters = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return " ".join(re.findall(r"[^\W\d_]+|\d+|#", letters)).casefold()


class Names:
    """Names that have one of some words; those in ``ends`` may be the end of a longer word.

    ``unless`` are names that are meant otherwise, though they have such a word.
    """

    def __init__(self, words: str, ends: str = "", unless: Names | None = None) -> None:
        longer = rf"|[^ ]*(?:{ends})" if ends else ""
        self._pattern = re.compile(rf"(?:^| )(?:{words}{longer})(?= |$)")
        self._unless = unless

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or self._pattern.search(words_of(name)) is None:
            return False
        return self._unless is None or name not in self._unless


QUANTITY = Names(
    "age|years?|jahre?|counts?|n|num|number of|anzahl|nombre de|length|size|rate|share|pct|percent|mean|avg|average|"
    "median|total|sum|amount|price|cost|costs|days|months|hours|minutes|time|date|score|income|per|calls|users|visits|"
    "usage|bill|sales|since|until|to|at|distance|population|ratio",
    "anzahl|dauer|kosten",
)
"""What is counted or measured, though of a code or a phone: age at diagnosis, phone calls."""
BIRTH = Names(
    "dob|births?|birthday|bday|birthdate|born|geboren|geb|gebdat|naissance|naiss|ddn|nacimiento|nac|nascimento|"
    "nascita|geboortedatum|fodselsdato",
    "geburtsdatum|geburtstag|geburt",
)
LATER = Names(
    "expiry|expires?|expiration|exp|due|valid|until|end|ends|maturity|matures|deadline|renewal|planned|target|forecast|"
    "eta|bis|faellig|fallig|gultig|echeance|vencimiento|caducidad|validade|scadenza|best before|next",
    "ablauf|ablaufdatum|faelligkeit|falligkeit|ende|mhd",
)
"""Dates that may lie in the future."""
DATE = Names("date|dates|datum|dat|dt|fecha|dob|birthdate", "datum")
MONTH = Names(
    "month|yyyymm|ym|yearmonth|period|monat|mois|mes|mese|maand|periode|periodo|anno mese|vintage",
    "monat|periode",
)
WEEK = Names("week|yyyyww|yearweek|kw|woche|semaine|semana|settimana|weeknum", "woche")
PART_OF_TIME = Names(
    "hour|hours|hr|stunde|heure|hora|ora|day of month|day|tag|jour|dia|month|monat|mois|mes|mese|week|kw|woche|semaine|"
    "semana|minute",
    "stunde|monat|woche",
)
"""Hours, days, months and weeks by their numbers, for which 07 is a way to write 7."""
EXPIRY = Names(
    "expiry|expires?|expiration|exp|valid|gultig|ablauf|echeance|caducidad|vencimiento|validade|scadenza", "ablauf"
)
LENGTH_OF_TIME = Names(
    "duration|durations|pace|splits?|lap|laps|laptime|elapsed|time taken|time spent|time on|time to|time in|runtime|"
    "run time|"
    "running time|length|race time|chip time|net time|gun time|best time|swim|bike|run|response time|wait|wait time|"
    "waiting|delay|handle time|handling time|talk time|hold time|travel time|watch time|worked|overtime|break|hours|"
    "downtime|uptime|lead time|cycle time|sleep|asleep|commute|"
    "duree|temps|duracion|tiempo|durata|tempo|dauer|zeitdauer|spielzeit|stunden|pause|verspatung",
    "dauer|laufzeit|fahrzeit|arbeitszeit|wartezeit|spielzeit|rundenzeit|stunden|bestzeit|endzeit",
)
MINUTES_AND_SECONDS = Names(
    "pace|splits?|lap|laps|laptime|song|track|call|talk time|hold time|handle time|swim|time on|session", "rundenzeit"
)
"""Lengths of time of which two parts are minutes and seconds."""
RATIO = Names("ratio|aspect|odds|scores?|result|results|verhaltnis|mischung|scale|massstab")
PERSON = Names(
    "surname|last ?name|family ?name|name|names|first ?name|given ?name|maiden name|nom|prenom|apellidos?|nombre|"
    "cognome|sobrenome|author|customer|contact|player|employee",
    "nachname|vorname|familienname",
)
ID = re.compile(
    r"(?i)(?:^|[\s_.-])(?:id|uuid|guid|key|idx|rownum|nr|no|#)$|^(?:index|row|number)$|(?-i:[a-z](?:ID|Id)$)"
    r"|(?:order|invoice|account|acct|customer|member|employee|patient|policy|ticket|case|claim|contract|document|receipt|"
    r"transaction|reference|serial|booking|tracking|record)[\s_.-]?num(?:ber)?$"
    r"|nummer$|^unnamed: \d+$|^column \d+$"
)
ID_WORD = re.compile(r"(?i)(?:^|[\s_.-])id$|(?-i:[a-z](?:ID|Id)$)|nummer$")
"""Numbers of this name are names of things even where they repeat; nr and no may be those of a house."""
CLOCK = Names("heures?|hora|ora|uhrzeit|start|begin|beginn|depart|arrivee|salida|llegada|abfahrt|ankunft|ouverture")
PHONE = Names(
    "phone|phones|telephone|tel|mobile|cell ?phone|fax|telefon|telefono|handy|mobil|movil|whatsapp|msisdn",
    "phone|telefon|telefonnummer|handynummer|mobilnummer|phonenumber",
    unless=QUANTITY,
)
POST = Names(
    "zip|zips|zipcode|postcode|postal|postalcode|plz|postleitzahl|code postal|cp|codigo postal|cep|postnummer|postnr",
    "plz|postleitzahl",
    unless=QUANTITY,
)
VERSION = Names(
    "version|ver|release|firmware|kernel|sdk|build|chapter|section|kapitel|abschnitt|paragraph",
    "version",
    unless=QUANTITY,
)
CODE = Names(
    "code|codes|icd|icd 9|icd 10|dx|diag|diagnosis|diagnose|cpt|hcpcs|drg|ndc|loinc|snomed|atc|"
    "isbn|issn|ean|ean13|gtin|upc|asin|barcode|sku|plu|mpn|naics|sic|nace|isic|noga|fips|geoid|tract|census tract|"
    "cusip|isin|wkn|sedol|iban|bic|blz|ssn|imei|iccid|imsi|hts|taric|cpv|siret|siren|insee|nif|"
    "mrn|npi|nhs number|pesel|regon|pin|pin ?code|hsn|duns|matrikel|matricule|"
    "ags|gemeindeschluessel|gemeindeschlussel|routing",
    "code|schluessel|schlussel|kennziffer|barcode|isbn",
    unless=QUANTITY,
)
TIME = re.compile(
    r"(?i)(?:^|[\s_.-])(?:time|date|epoch|timestamp|created|updated|modified|at|ts|unix|zeit|datum)(?:$|[\s_.-])"
    r"|(?:timestamp|datetime|(?-i:[a-z](?:Time|Date|At)))$"
)
