"""Names that a title, a label or a phrase announces, in five languages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpredact.tagging import lexicon
from dpredact.tagging.patterns.anchors import anchored
from dpredact.tagging.patterns.interface import Hit, Reading
from dpredact.tagging.patterns.tokens import MONTHS, kinds_of

_UP = r"[A-ZÀ-ÖØ-ÞŁŚŞĞİČŠŽĆĐŐŰŘ]"
_NAME = rf"(?:{_UP}\.|{_UP}[^\W\d_]*(?:[.'’‑-]{_UP}?[^\W\d_]+)*)"
_PARTICLE = r"(?:de la|de los|van der|van den|von der|de|del|della|di|da|dos|du|van|von|der|ter|ten|zu|bin|ibn|al|el|la|le|y|af)"
_FULL = rf"{_NAME}(?:[ ‑-](?:{_PARTICLE} )?{_NAME}){{0,4}}"
_ANY_CASE = r"[^\W\d_](?:[^\W\d_]|['’.‑-](?=[^\W\d_]))+"

_TITLE = anchored(
    rf"(?<![\w.])(?:(?:Mr|Mrs|Ms|Mx|Miss|Dr|Prof|Professor|Sir|Lady|Lord|Dame|Judge|Justice|Rev|Sgt|Lt|Capt|Cpl|Gen|"
    rf"Herrn?|Frau|Hr|Fru|Frk|hr|fru|MM|Mme|Mlle|Sra?|Srta|Don|Doña|D|Dña|Dra|Señora?|Monsieur|Madame|Maître|doctora?|señora?|monsieur|madame)"
    rf"\b\.?ª? ){{1,3}}(?P<x>(?:(?:{_PARTICLE}) )?{_FULL})",
    "mr mrs ms mx miss dr prof sir lady lord dame judge justice rev sgt lt capt cpl gen herr frau hr fru frk mm mme mlle sr sra srta don dona d dna dra senor monsieur madame maitre doctor",
)
_INTRO = anchored(
    rf"(?:(?i:\b(?:my name(?:'s|’s| is)|(?:his|her|their|its|whose) names? (?:is|was|are)|name was|the name(?:'s|’s| is)|i go by|call me|known as|"
    rf"née|nee|alias|a\.k\.a\.|aka|this is|it'?s|speaking with|signed(?: by)?:?|yours (?:sincerely|faithfully|truly),?|(?:kind|best|warm|many)? ?regards,?|sincerely,?|cheers,?|"
    rf"me llamo|mi nombre es|se llama|je m['’]appelle|je suis|mon nom est|s['’]appelle|ich heiße|mein name ist|heißt|jeg hedder|mit navn er|hedder|"
    rf"dear|hi|hello|hey|good (?:morning|afternoon|evening)|estimad[oa]|querid[oa]|hola|ch[eè]re?|bonjour|liebe[rs]?|sehr geehrte[rs]?(?: (?:herrn?|frau))?|hallo|kære|hej|"
    rf"i am|i'm|i’m|im)[ \n]+)(?P<x>{_FULL}))",
    "my_name his_name her_name their_name its_name whose_name name_was the_name i_go_by call_me known_as nee alias a.k.a aka this_is it's its_ speaking_with signed yours kind best warm many regards sincerely cheers "
    "me_llamo mi_nombre se_llama je_m je_suis mon_nom s'appelle ich_heiße mein_name heißt jeg_hedder mit_navn er_hedder hedder dear hi hello hey good_ estimad querid hola cher bonjour lieb sehr_geehrte hallo kære hej i_am i'm im_",
)
_LOWER_INTRO = anchored(
    rf"(?i)\b(?:my name(?:'s|’s| is)|i go by|call me|(?:his|her) name(?:'s|’s| is| was)|me llamo|je m['’]appelle|ich heiße|mein name ist|jeg hedder|dear|hi|hello|hey) "
    rf"(?P<x>{_ANY_CASE}(?: {_ANY_CASE}){{0,2}})",
    "my_name i_go_by call_me his_name her_name me_llamo je_m ich_heiße mein_name jeg_hedder dear hi hello hey",
)
_KIN = anchored(
    rf"\b(?i:(?:my|his|her|their|our|the (?:patient|applicant|client|claimant)['’]s) (?:late |elder |younger |eldest |youngest |older |twin |step|ex-|best |old )*"
    rf"(?:wife|husband|spouse|partner|son|daughter|brother|sister|mother|father|mum|mom|dad|uncle|aunt|cousin|nephew|niece|grand\w+|friend|"
    rf"boss|manager|colleague|neighbou?r|teacher|doctor|gp|lawyer|solicitor|nurse|landlord|roommate|flatmate|boyfriend|girlfriend|fianc[ée]+|"
    rf"assistant|carer|therapist|tutor|coach|agent),? )(?P<x>{_FULL})",
    "my_ his_ her_ their_ our_ the_patient the_applicant the_client the_claimant",
)
_BY = anchored(
    rf"\b(?i:(?:(?:signed(?: for)?|written|prepared|reported|reviewed|approved|handled|seen|examined|treated|referred|represented|filed|submitted|authored|"
    rf"completed|requested|witnessed|issued|assigned|delivered|accompanied|interviewed|assessed|admitted|discharged|operated|taken|owned|lodged|brought) by|"
    rf"on behalf of|forward(?:ed)?(?: (?:this|it|that|them))? to|belongs? to|c/o|attn\.?:?|attention:?|cc:?|fao:?|care of|in the name of|addressed to|spoke (?:to|with)|"
    rf"escalated to|reports? to|passed (?:it |this )?(?:on )?to) )(?P<x>{_FULL})",
    "signed written prepared reported reviewed approved handled seen examined treated referred represented filed submitted authored completed requested witnessed issued assigned delivered accompanied interviewed assessed admitted discharged operated taken owned lodged brought "
    "on_behalf forward belong c/o attn attention cc fao care_of in_the_name addressed spoke escalated report passed",
)
_BY_LOWER = anchored(
    rf"(?i)\b(?:forward(?:ed)?(?: (?:this|it|that|them))? to|belongs? to|signed(?: for)? by|on behalf of|in the name of|spoke (?:to|with)|c/o|attn:?|reach out to|addressed to) "
    rf"(?P<x>{_ANY_CASE} {_ANY_CASE})",
    "forward belong signed on_behalf in_the_name spoke c/o attn reach_out addressed",
)
_ROLES = (
    r"(?:full |first |last |middle |given |family |sur|maiden |preferred |legal |contact |customer |client |patient |employee |student |account holder |cardholder |card holder |company contact )?names?|"
    r"surname|forename|alias|patient|claimants?|handler|applicants?|respondents?|defendants?|plaintiffs?|petitioners?|appellants?|complainants?|victims?|witness(?:es)?|suspects?|"
    r"accused|author|sender|recipient|from|to|cc|bcc|attn|attention|contact(?: person)?|client|customer|employee|employer|manager|supervisor|doctor|physician|surgeon|consultant|"
    r"gp|nurse|therapist|dentist|pharmacist|provider|attending|teacher|pupil|student|tutor|parents?|guardian|carer|mother|father|spouse|husband|wife|child|children|son|daughter|next of kin|"
    r"emergency contact|beneficiary|insured|policy ?holder|account holder|cardholder|tenant|landlord|owner|driver|passenger|buyer|seller|agent|lawyer|attorney|solicitor|counsel|judge|"
    r"officer|investigator|interviewer|interviewee|reviewer|assignee|assigned to|reported by|reporter|requester|requestor|requested by|prepared by|approved by|signed(?: by)?|signature|written by|submitted by|seen by|"
    r"referred by|caller|speaker|participant|candidate|member|user|resident|director|secretary|treasurer|chair(?:man|person|woman)?|host|guest|technician|engineer|representative|rep|operator|"
    r"nombre(?: y apellidos| completo)?|apellidos?|paciente|médico|remitente|destinatario|firmado(?: por)?|cliente|de|para|"
    r"nom|pr[ée]nom|nom et pr[ée]nom|patiente?|m[ée]decin|exp[ée]diteur|destinataire|client|"
    r"vorname|nachname|familienname|vor- und nachname|patientin?|arzt|ärztin|absender|empfänger|ansprechpartner(?:in)?|kunde|kundin|sachbearbeiter(?:in)?|"
    r"navn|fornavn|efternavn|læge|afsender|modtager|kontaktperson|kunde|sagsbehandler|underskrift"
)
_LABEL = re.compile(
    rf"(?im)(?:^|(?<=[\t|;,.(\[]))(?:[^\w\n]|_){{0,8}}(?:the |treating |lead |primary |referring |case |site |project |home |legal )?(?P<label>{_ROLES})(?: ?\(s\)| \d)?[*_]*[ ]?[:=][*_]*[ \t]*"
    rf"(?P<x>[^\n\t|;:<>\[\]()=]{{2,70}})"
)
_STOPS = re.compile(r"[,/(<\[|]| - | – | & | (?:and|y|et|und|og|or|of|from|at|on|for|in|with|who|is|was|has|born|aged|dob|tel|phone|email|date|id|no|age)\b|\.(?: |$)", re.IGNORECASE)


_TURNED = re.compile(rf"(?<![\w-])(?P<x>{_UP}{{3,}}(?:[-'’ ]{_UP}{{2,}})?, (?P<given>{_UP}[a-zß-öø-ÿ]+)(?: {_UP}(?:\.|[a-zß-öø-ÿ]+))?)(?![\w-])")


_DEGREES = frozenset("md phd rn jr sr esq do dds mba ma ba bsc msc cpa lcsw np pa frcp mbbs ii iii iv qc kc jd".split())


def find(reading: Reading) -> Iterator[Hit]:
    text = reading.cased
    for match in reading.anchored(_TITLE, text):
        yield _hit(text, match, 0.9, "name after a title")
    for pattern, score, rule in (
        (_INTRO, 0.8, "name after a greeting or introduction"),
        (_KIN, 0.85, "name after a relation"),
        (_BY, 0.75, "name after 'signed by' and the like"),
    ):
        for match in reading.anchored(pattern, text):
            if hit := _checked(text, match, score, rule):
                yield hit
    for pattern in (_LOWER_INTRO, _BY_LOWER):
        for match in reading.anchored(pattern, text):
            if hit := _lower(match, "name in lower case after words that announce it"):
                yield hit
    for match in reading.on_lines(_TURNED, ","):
        surname, given = lexicon.plain(match["x"].partition(",")[0]), lexicon.plain(match["given"])
        ordinary = lexicon.is_common(surname) and surname not in lexicon.surnames()
        if given in lexicon.first_names() and given not in MONTHS and not ordinary and surname not in lexicon.places():
            yield Hit(*match.span("x"), "PERSON", 0.8, "surname in capitals before a given name")
    for match in reading.on_lines(_LABEL, ":=", text):
        yield from _after_label(text, match)


def _hit(text: str, match: re.Match[str], score: float, rule: str) -> Hit:
    start, end = match.span("x")
    while end > start + 1 and text[end - 1] in ".'’-":
        end -= 1
    return Hit(start, end, "PERSON", score, rule)


def _checked(text: str, match: re.Match[str], score: float, rule: str) -> Hit | None:
    """The name without the ordinary words that a capital made look like more of it."""
    hit = _hit(text, match, score, rule)
    words = re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", text[hit.start : hit.end])
    first = kinds_of(words[0])
    if first & {"stop", "day", "head", "proper"} or lexicon.plain(words[0]) in MONTHS and len(words) == 1:
        return None
    if len(words) == 1 and "common" in first and "given" not in first and "surname" not in first:
        return None
    if len(words) == 1 and "place" in first and "given" not in first:
        return None
    if any("head" in kinds_of(w) and "given" not in kinds_of(w) for w in words[1:]):
        return None
    if all("common" in kinds_of(w) and not kinds_of(w) & {"given", "surname"} for w in words):
        return None
    return hit


def _lower(match: re.Match[str], rule: str) -> Hit | None:
    """Leading words of the match that are no ordinary words, in lower case or not."""
    end = start = match.start("x")
    count = 0
    for word in re.finditer(r"\S+", match["x"]):
        kinds = kinds_of(word[0].strip(".,"))
        ordinary = kinds & {"stop", "proper"} or ("common" in kinds and (count == 0 and "given" not in kinds or count))
        if ordinary and not (count and "surname" in kinds and "frequent" not in kinds):
            break
        end = start + word.end()
        count += 1
    return Hit(start, end, "PERSON", 0.7, rule) if count else None


def _after_label(text: str, match: re.Match[str]) -> Iterator[Hit]:
    """The value of a label such as `Claimant:`, up to the first mark or word that ends a name.

    Capitals are not asked for; but a value of ordinary words only is no name.
    """
    start = match.start("x")
    value = match["x"]
    for piece in re.finditer(r"(?:(?! and | & | y | et | und | og |, | / ).)+", value):
        words = piece[0]
        if stop := _STOPS.search(words.rstrip(" .") + " "):
            words = words[: stop.start()]
        words = words.strip(" .*_\"'“”")
        tokens = re.findall(r"[^\W\d_]+(?:[.'’‑-]+[^\W\d_]+)*", words)
        if not 1 <= len(tokens) <= 5 or any(c.isdigit() or c == "@" for c in words):
            continue
        if all(lexicon.plain(t).replace(".", "") in _DEGREES for t in tokens):
            continue
        kinds = [kinds_of(t) for t in tokens]
        capitals = all("capital" in k for k in kinds)
        strange = sum(bool(k & {"unknown", "given", "surname", "initial"}) and "frequent" not in k for k in kinds)
        if any(k & {"stop", "head", "day"} and not k & {"given", "surname"} for k in kinds):
            continue
        if strange == len(tokens) or (capitals and strange * 2 >= len(tokens)) or (strange and all("common" not in k or k & {"given", "surname"} for k in kinds)):
            low = start + piece.start() + piece[0].index(words)
            yield Hit(low, low + len(words), "PERSON", 0.8, f"name after the label '{match['label'].lower()}'")
