"""Family status, children, what somebody works as, and diagnoses, for groups that ask for them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpredact.tagging.patterns.anchors import anchored
from dpredact.tagging.patterns.interface import Hit, Reading, hits

_COUNT = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|\d{1,2})"
_STATUS = anchored(
    r"(?i)\b(?:(?:un|newly |happily |re)?married|divorced|divorcee|widow(?:ed|er)?|separated from|engaged to be married|"
    r"single (?:mother|father|mom|mum|dad|parent)|verheiratet|geschieden|verwitwet|ledig|casad[oa]|divorciad[oa]|viud[oa]|"
    r"solter[oa]|mariée?|divorcée?|veuve?|célibataire|gift|fraskilt|enke(?:mand)?|ugift)\b",
    "married unmarried newly_married happily_married remarried divorced divorcee widow separated engaged single verheiratet "
    "geschieden verwitwet ledig casad divorciad viud solter marie divorce veuf veuve celibataire gift fraskilt enke ugift",
)
_CHILDREN = anchored(
    rf"(?i)\b(?:(?:mother|father|mom|mum|dad|parents?|grand(?:mother|father|parent)) (?:of|to) {_COUNT}(?: (?:kids|children|sons|daughters))?"
    rf"|(?:no|{_COUNT}) (?:(?:adult|young|small|teenage|grown) )?(?:kids|children|sons|daughters)|childless)\b",
    "mother father mom mum dad parent grand no_ one two three four five six seven eight nine ten 1 2 3 4 5 6 7 8 9 childless",
)

# What people work as, behind words that say so of somebody: "worked as a primary school
# teacher", "the applicant, a lorry driver,". The trade alone, or in a firm's name, tells nothing.
_TRADES = (
    "accountant actor actress administrator advocate architect artist baker banker barber bookkeeper bricklayer builder butcher caretaker "
    "carpenter cashier chef chemist cleaner clerk coach commander conscript consultant cook counsellor councillor dancer dentist designer "
    "doctor driver economist editor editor-in-chief electrician engineer farmer firefighter fisherman foreman gardener guard hairdresser "
    "headmaster headteacher imam instructor interpreter inspector janitor journalist judge labourer lawyer lecturer librarian magistrate "
    "manager mathematician mayor mechanic merchant midwife miner minister model monk musician notary nun nurse officer operator optician "
    "painter pastor pharmacist philosopher photographer physician physicist physiotherapist pilot plumber policeman policewoman politician "
    "porter practitioner priest principal professor programmer prosecutor psychiatrist psychologist publisher rabbi receptionist reporter "
    "researcher sailor salesman scientist secretary sergeant servant shopkeeper singer social_worker soldier solicitor student supervisor "
    "surgeon surveyor tailor teacher technician therapist trader trainee translator tutor typist vet veterinarian waiter waitress warden "
    "watchman welder writer captain lieutenant colonel major assistant vice-president governor"
)
_LONGEST_FIRST = "|".join(sorted((t.replace("_", " ") for t in _TRADES.split()), key=len, reverse=True))
_TRADE = anchored(rf"(?i)\b(?:{_LONGEST_FIRST})s?\b(?! practi[sc]ing)", _TRADES)
_SAID_OF = re.compile(
    r"(?i)(?:\b(?:work(?:s|ed|ing)?|employed|practi[sc](?:e|es|ed|ing)|serv(?:e|es|ed|ing)|qualified|trained|retired|job|post|position|profession|"
    r"career|becoming|became|contract) (?:as|of)?|\b(?:he|she|who|applicant|claimant|plaintiff|defendant|patient|appellant|complainant)(?:,? who)? "
    r"(?:is|was|had been|has been|became)|\b(?:applicant|claimant|plaintiff|defendant|patient|appellant|complainant),)"
    r" ?(?:also |still |then |now )?(?:an? |the )?(?P<x>(?:(?!(?:an?|the|his|her|of|by|to|in|and|or|with|for|on|at|not|that|who)\b)[^\W\d_][\w‑-]* ){0,4})$"
)
_ILL = anchored(
    r"(?i)\b(?:diagnosed with|suffer(?:s|ed|ing)? from|diagnosis of|treated for)(?: an?| the| severe| mild| chronic| acute){0,2} "
    r"(?P<x>[a-zß-öø-ÿ][\w‑-]+(?: (?!(?:and|or|in|at|on|by|for|with|which|who|that|as|to|from|since|was|is|had|has|after|before|when|where|because)\b)[a-zß-öø-ÿ][\w‑-]+){0,3})",
    "diagnosed suffer diagnosis treated_for",
)

# Conditions that their own name tells: by how the word ends, or because it means nothing else.
_ENDS_ILL = (
    "itis", "osis", "oses", "algia", "algias", "opathy", "opathies", "aemia", "anemia", "leukemia", "plegia", "paresis", "plasia",
    "trophy", "carcinoma", "sarcoma", "lymphoma", "melanoma", "glaucoma", "hematoma", "haematoma", "phrenia", "phrenic", "epsia", "arthria",
    "rhoea", "rrhea", "uria", "ectomy", "iatica", "pnoea", "pnea",
)  # fmt: skip
_NOT_ILL = frozenset(
    "diagnosis diagnoses prognosis prognoses hypnosis osmosis symbiosis metamorphosis trophy apotheosis mitosis meiosis homeopathy "
    "homoeopathy osteopathy naturopathy".split()
)
_WHERE = (
    "head skull brain face eye nose jaw neck spine spinal vertebra vertebrae rib ribs shoulder collarbone arm elbow wrist hand finger "
    "thumb chest lung lungs heart liver kidney kidneys stomach abdomen pelvis hip hips leg thigh femur knee kneecap patella tibia fibula ankle "
    "foot toe back tooth teeth ear hearing sight vision eyesight limb limbs memory speech consciousness"
)
_CONDITION = anchored(
    r"(?i)\b(?:asthma(?:tic)?|epilep(?:sy|tic)|diabet(?:es|ic)(?: mellitus)?(?: type [12])?|schizo(?:phrenia|affective disorder)|dementia|"
    r"alzheimer['’]?s(?: disease)?|parkinson['’]?s(?: disease)?|multiple sclerosis|cerebral palsy|down['’]?s syndrome|autis(?:m|tic)|"
    r"tuberculosis|pneumonia|hiv(?:[- ]positive|[- ]infection)?|hepatitis(?: [a-e]\b)?|hypertension|migraines?|angina(?: pectoris)?|"
    r"heart attacks?|heart failure|myocardial infarction|(?:breast|lung|prostate|skin|bowel|stomach|liver|throat|cervical|testicular) cancer|"
    r"(?:slipped|herniated) dis[ck]s?|herniated (?:lumbar|cervical) dis[ck]s?|(?:bipolar|personality|anxiety|depressive|post[- ]traumatic stress|"
    r"eating|obsessive[- ]compulsive|mental|psychotic|borderline personality) disorders?|ptsd|adhd|"
    rf"(?:fracture[sd]?|broken|amputat(?:ed|ion)|dislocat(?:ed|ion)|ruptured?|loss|paralys(?:is|ed)|contusions?|lacerations?|calcification)(?: of)?"
    rf" (?:(?:the|his|her|their|both|left|right|lower|upper|\d+(?:st|nd|rd|th)|[a-z]{{4,9}}al|in) ){{0,4}}(?:{'|'.join(_WHERE.split())})(?: in (?:the|his|her) (?:left |right )?(?:eye|ear))?)\b",
    "asthma epilep diabet schizo dementia alzheimer parkinson multiple_sclerosis cerebral_palsy down autis tuberculosis pneumonia hiv "
    "hepatitis hypertension migraine angina heart_attack heart_failure myocardial breast lung prostate skin bowel stomach liver throat "
    "cervical testicular slipped herniated bipolar personality anxiety depressive post-traumatic post_traumatic eating obsessive mental "
    "psychotic borderline ptsd adhd fracture broken amputat dislocat rupture loss paralys contusion laceration calcification",
)

_PENALTY = anchored(r"(?i)\b(?:life (?:imprisonment|sentence)|(?:death|capital) (?:penalty|sentence|punishment))\b", "life death capital")


def _trades(reading: Reading) -> Iterator[Hit]:
    for match in reading.anchored(_TRADE):
        before = reading.before(match.start(), 90)
        if said := _SAID_OF.search(before):
            yield Hit(match.start() - len(said["x"]), match.end(), "PROFESSION", 0.7, "what somebody works as")


def _conditions(reading: Reading) -> Iterator[Hit]:
    yield from hits(reading.anchored(_CONDITION), "HEALTH", 0.7, "the name of a condition")
    for start, end, word in reading.words:
        if end - start >= 6 and (low := word.lower()).endswith(_ENDS_ILL) and low not in _NOT_ILL:
            yield Hit(start, end, "HEALTH", 0.7, "a word that ends as conditions do")


def find(reading: Reading) -> Iterator[Hit]:
    english_only = not reading.spoken & {"da"}  # "gift" is a word of its own in English
    for hit in hits(reading.anchored(_STATUS), "DEMOGRAPHIC", 0.75, "family status"):
        if not (english_only and reading.flat[hit.start : hit.end] == "gift"):
            yield hit
    yield from hits(reading.anchored(_CHILDREN), "DEMOGRAPHIC", 0.75, "number of children")
    yield from _trades(reading)
    yield from hits(reading.anchored(_PENALTY), "QUANTITY", 0.7, "a penalty without a number")
    yield from hits(reading.anchored(_ILL), "HEALTH", 0.7, "illness after words that announce it")
    yield from _conditions(reading)
