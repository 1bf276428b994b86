"""Normalize names of documents: one spelling, singular and plural, participles of verbs."""

import re


def normalize_words(words: str) -> frozenset[str]:
    """Return a set of names from a text, in the spelling that `normalize_name` gives."""
    return frozenset(words.split())


_IRREGULAR = {
    "people": "person",
    "children": "child",
    "men": "man",
    "women": "woman",
    "data": "datum",
    "media": "medium",
    "indices": "index",
    "criteria": "criterion",
    "analyses": "analysis",
    "movies": "movie",
    "series": "series",
    "news": "news",
    "status": "status",
    "address": "address",
    "addresses": "address",
    "statuses": "status",
    "aliases": "alias",
    "cookies": "cookie",
    "caches": "cache",
}
_PARTICIPLES = {
    "pay": "paid",
    "send": "sent",
    "hold": "held",
    "begin": "begun",
    "read": "read",
    "withdraw": "withdrawn",
    "freeze": "frozen",
    "hide": "hidden",
    "win": "won",
    "lose": "lost",
    "take": "taken",
    "give": "given",
    "write": "written",
    "undo": "undone",
    "reopen": "reopened",
    "draw": "drawn",
    "lend": "lent",
    "sell": "sold",
    "run": "run",
    "forget": "forgotten",
    "rebuild": "rebuilt",
    "unfreeze": "unfrozen",
    "offer": "offered",
    "rollback": "rolled_back",
    "checkout": "checked_out",
    "do": "done",
    "put": "put",
    "set": "set",
    "reset": "reset",
    "split": "split",
}
_ADJECTIVES = {
    "activate": ("active",),
    "reactivate": ("active",),
    "deactivate": ("inactive",),
    "open": ("open",),
    "reopen": ("open",),
    "complete": ("complete", "done"),
    "finish": ("done",),
    "void": ("void",),
    "enable": ("active",),
    "disable": ("inactive",),
    "start": ("running", "in_progress", "active"),
    "begin": ("running", "in_progress", "active"),
    "resume": ("running", "in_progress", "active"),
    "stop": ("inactive",),
    "hold": ("on_hold",),
    "return": ("returned",),
    "accept": ("accepted",),
    "deny": ("denied",),
}
_VERBS = normalize_words(
    "accept activate add append apply approve archive assign attach authorize block calculate cancel capture "
    "change check clear clone close commit complete compute confirm convert copy create deactivate decline "
    "delete deny detach disable duplicate edit enable end execute expire export finalize finish follow fork "
    "generate import insert instantiate invite leave like lock merge modify move notify open pause pay play "
    "preview process promote publish reassign refresh refund register reject release remove rename reopen "
    "reorder replace reply reschedule resend reset resolve restore resume retry return revert review revoke "
    "rotate run save schedule send set share ship sign skip split start stop submit subscribe suspend swap "
    "switch sync terminate toggle transfer trigger unassign unfollow unlock unsubscribe update upload "
    "validate verify void withdraw"
)
_ELSEWHERE = normalize_words("clone copy duplicate export fork import invite merge notify preview send share split")
"""Verbs whose object stays as it is: what they do happens to something else."""
_UNDOING = {"unlock": "locked", "unarchive": "archived", "unpublish": "published", "unpin": "pinned"}


def to_snake_case(name: str) -> str:
    """Return any spelling in snake case: "customerID" is "customer_id"."""
    parts = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name))
    return re.sub(r"[^a-z0-9]+", "_", parts.lower()).strip("_")


def normalize_name(name: str) -> str:
    """Return a name's canonical spelling: "customerId" and "customer-id" are both "customerid"."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def to_singular(word: str) -> str:
    """Return the singular of a noun in snake case: "order_items" is "order_item"."""
    head, _, last = word.rpartition("_")
    return f"{head}_{_singularize_word(last)}" if head else _singularize_word(last)


def _singularize_word(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if re.search(r"(ss|sh|ch|x|zz)es$", word):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def with_article(noun: str) -> str:
    """Return a noun in snake case as words with its article."""
    words = noun.replace("_", " ")
    return f"{'an' if words[:1] in 'aeiou' else 'a'} {words}"


def find_outcomes(verb: str) -> tuple[str, ...]:
    """Return the participles and adjectives of a verb, most literal first: "cancel" gives "cancelled", "canceled"."""
    word = verb.split("_")[0]
    if word in _PARTICIPLES:
        return (_PARTICIPLES[word], *_ADJECTIVES.get(word, ()))
    if word.endswith("e"):
        participles: tuple[str, ...] = (f"{word}d",)
    elif re.search(r"[^aeiou]y$", word):
        participles = (f"{word[:-1]}ied",)
    elif re.search(r"[^aeiou][aeiou][bdgklmnprt]$", word):
        participles = (f"{word}{word[-1]}ed", f"{word}ed")
    else:
        participles = (f"{word}ed",)
    return tuple(dict.fromkeys((*participles, *_ADJECTIVES.get(word, ()))))


def is_verb(name: str) -> bool:
    """Return True if a name in snake case begins with a verb: "set_parent" does, "settings" does not."""
    return name.split("_")[0] in _VERBS


def leaves_unchanged(verb: str) -> bool:
    """Return True if a verb leaves its object as it is."""
    return verb.split("_")[0] in _ELSEWHERE


def find_undone(verb: str) -> str | None:
    """Return the state that ends with a verb which undoes something: "unlock" gives "locked"."""
    return _UNDOING.get(verb)
