"""Recognises refusals for the length of one field: a name, an id, a URL, an audio file.

They are worded like refusals of size, and their limits (64 characters, 25 minutes) would be taken
for a window in tokens.  A sentence counts if a field is what its verb says is too long, or if it
names nothing and a limit too small for a request; and if it does not speak of tokens or of the
request's size.
"""

from __future__ import annotations

import re

_WHOLE = (
    r"(?:prompts?|inputs?|requests?|messages?|conversations?|history|context|content|quer(?:y|ies)|"
    r"sequences?|texts?|body|payload|entrée|requête|contexte|eingabe|anfrage|nachricht\w*|kontext)"
)
"""Words for the request or its history: a sentence about one of these is about size."""
_JOINED = r"(?:with|and|of|for|including|avec|et|de|des|mit|und|von)"
_NAMED = r"(?:fields?|property|parameters?|attributes?)"
_FIELD = (
    r"(?<![a-zà-ÿ])(?:(?:file|user|host)?names?|ids?|identifiers?|descriptions?|ur[li]s?|metadata|"
    r"titles?|labels?|keys?|schemas?|tags?|headers?|cookies?|e-?mail(?: address)?|stop (?:word|"
    r"sequence|string)s?|(?:access|auth|session|bearer|id)[ _-]token|audio|video|recording|"
    r"noms?|titres?|identifiants?|étiquettes?|clés?|beschreibung|titel|kennung|schlüssel|"
    rf"{_NAMED} (?!{_WHOLE}\b|\w*tokens?\b|(?:is|was|are|were|has|too|longer|larger|must)\b|length|"
    r"size|value|exceed)[\w.]+)(?![\w-])"
)
_BETWEEN = (
    r"[:,]?(?: (?:in|of|for|from|de|du|des|der|dans) (?:(?:the|your|a|la|le|der|die) )?"
    r"\S+(?<![.;])|"
    rf" (?!(?:and|or|et|ou|und|oder|{_WHOLE})\b)\S+(?<![.;])){{0,6}}? "
)
_TOO_LONG = (
    r"(?:exceed|surpass|dépass|überschr|(?:too|trop|zu) (?:long|large|big|lang|groß)|"
    r"(?:longer|larger|greater|more) than)"
)
_BUT_OF_WHOLE = (
    r"\w*(?: \S+){0,4}? (?:prompt|input|context|sequence|request|body|message)s? "
    r"(?:length|size|window|limit)"
)
"""What follows the verb in ``key 7 exceeds the maximum prompt length``."""
_SAID_OF_FIELD = re.compile(rf"{_FIELD}{_BETWEEN}{_TOO_LONG}(?!{_BUT_OF_WHOLE})")
_LIMIT_FOR_FIELD = re.compile(
    rf"(?:length|limit|characters|exceeded)\b(?: \S+){{0,3}}? (?:for|of) (?:\w+ ){{0,3}}{_FIELD}"
)
_CJK = re.compile(
    r"(?:名[称稱字]?|描述|说明|說明|説明|[标標][题題]|タイトル|[链鏈][接結]|(?<![a-z])(?:id|key|url))"
    r"(?:[内內]容|字符)? ?(?:的|の)?(?:[长長](?:度|さ)|文字数)?"
    r"(?:(?:が|は) ?(?:上限|最大)|(?:が|は)? ?(?:[过過太][长長]|長すぎ|超))"
)
_DURATION = re.compile(
    r"(?:maximum|max|limit|length|duration|exceeds?)"
    r"(?: (?:the|length|duration|limit|allowed|is|of))*"
    r":? \d+ ?(?:s|secs?|seconds?|mins?|minutes?|hours?)\b"
)
_SYSTEM_CHARS = re.compile(rf"system (?:prompt|instruction)s?{_BETWEEN}{_TOO_LONG}.{{0,80}}\d char")
_PART_CHARS = 140
"""So many characters before a field are read for the words of ``_PART_OF_WHOLE``."""
_PART_OF_WHOLE = re.compile(rf"\b{_WHOLE}\b[^.;:]{{0,60}}(?:\b{_JOINED}\b|\()[^.;:]{{0,40}}$")
"""``prompt of user id 7``, ``input with name``: the field only describes what is too long."""
_SMALL = re.compile(
    r"(?<![\d.,])(?:\d{1,4}|\d,\d{3}) ?(?:char|caract|zeichen|个?字符|字元|文字)|"
    r"(?:length|limit)(?: of| is|:)? \(?\d\d?\b(?![., ]\d| ?[kmg]i?b?\b| (?:kilo|mega|giga|mill))"
)
"""A limit of less than 10,000 characters, or one below 100."""
_WHOLE_WORD = re.compile(
    rf"\b{_WHOLE}\b|[输輸]入|入力|提示|プロンプト|[对對][话話]|会話|[内內]容|[请請]求|リクエスト|消息|文本"
)
_OF_REQUEST = re.compile(
    r"\btokens\b|\d ?tokens?\b|\btoken[ -](?:count|limit|size|length|number)|jetons|トークン|"
    r"request (?:body|size)|"
    r"context[ -]?(?:length|window|size|limit)|(?:the|models?) context\b|contexte|kontext|上下文|"
    r"コンテキスト"
)


def is_of_one_field(text: str) -> bool:
    """Whether ``text``, a message normalised by ``plain``, refuses the length of one field."""
    if _OF_REQUEST.search(text):
        return False
    if _DURATION.search(text) or _SYSTEM_CHARS.search(text) or _CJK.search(text):
        return True
    if any(not _PART_OF_WHOLE.search(_before(match)) for match in _SAID_OF_FIELD.finditer(text)):
        return True
    return not _WHOLE_WORD.search(text) and bool(
        _LIMIT_FOR_FIELD.search(text) or _SMALL.search(text)
    )


def _before(match: re.Match[str]) -> str:
    return match.string[max(match.start() - _PART_CHARS, 0) : match.start()]
