"""A role: the scripted user under another name."""

from trajsmith.usersim import DIALOGUE_ROLES, DialogueRole, build_user


def build_gardener(context):
    user = build_user("scripted", context)
    user.name = "gardener"
    return user


DIALOGUE_ROLES.register("gardener")(DialogueRole(user=build_gardener))
