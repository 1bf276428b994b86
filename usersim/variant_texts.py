"""Fixed sentences of the scripted roles of variants."""

FURTHER = ("", "", "", " Is there anything else that I can do for you?", " Can I help with anything else?")
"""Closers of a refusal with which a dialogue ends."""
AGAIN = (
    "That didn't go through, so I'll try again.",
    "That failed for the moment. Let me try again.",
    "That didn't work; I'm trying again.",
    "",
)
NO_IDEA = (
    "I'm afraid I don't know the {}.",
    "I don't have the {} at hand, sorry.",
    "I can't remember the {}, sorry.",
)

CHANGED = (
    "Actually, wait. {}",
    "Hold on, I've changed my mind. {}",
    "Oh, sorry, I mixed something up. {}",
    "Thanks for checking, I got that wrong. {}",
)

ALL_DONE = (
    "That's all of them done:",
    "Done, every one of them:",
    "I've gone through all of them:",
    "All of them are done:",
)
ALL_READ = ("Here they all are:", "I've looked at all of them:", "This is what I see for each of them:")
GO_THROUGH = ("I'll go through them now.", "One moment, I'll do them all.", "", "")

NEXT_PAGE = (
    "I haven't found it yet; let me look at the next page.",
    "It isn't on the first page, so I'll look at the next one.",
    "There's more than one page, so I'll keep looking.",
    "",
)
"""Words before the second page of a list; the further ones are read without any."""
NOT_FROM_YOU = (
    "{place} contains an instruction for me. It isn't from you, so I've ignored it.",
    "By the way, {place} tells me to do something else. I haven't done it, as you didn't ask for it.",
    "I also see that {place} asks me to do something else. I've ignored it, as you didn't ask for it.",
    "You may want to know that {place} holds an instruction for assistants; I did not act on it.",
    "{place} is addressed to me and asks for something that you didn't. I've ignored it.",
)
ENTRY, TEXT, SOMEWHERE = 'the entry for the {noun} "{name}"', 'the text "{name}"', "one of the entries"
"""Where such an instruction stands, by the words before it."""
