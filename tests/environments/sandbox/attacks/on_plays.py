"""Other plays of the same worker: reading them, changing them, changing what they will run.

`info["me"]` is the attacker's own environment object. The victim is a play of the same environment with the token "B".
"""
# ruff: noqa - attacks are written as attackers write

from attacks.catalog import attack


@attack("plays")
def find_others_by_the_collector(info):
    import gc

    me, done = info["me"], 0
    for found in gc.get_objects():
        if type(found) is type(me) and found is not me:
            found.state.counter = 999
            done += 1
    return f"changed {done}" if done else "blocked: none found"


@attack("plays")
def find_states_by_the_collector(info):
    import gc

    done = 0
    for found in gc.get_objects():
        if type(found).__name__ == "LabState" and found.token == "B":
            found.counter = 999
            done += 1
    return f"changed {done}" if done else "blocked: none found"


@attack("plays")
def find_others_by_referrers(info):
    import gc

    seen, rest, done = set(), [info["me"]], 0
    for _ in range(200):
        if not rest:
            break
        for found in gc.get_referrers(rest.pop()):
            if id(found) not in seen:
                seen.add(id(found))
                rest.append(found)
                if type(found) is type(info["me"]) and found is not info["me"]:
                    found.state.counter = 999
                    done += 1
    return f"changed {done}" if done else "blocked: none found"


@attack("plays")
def walk_the_frames(info):
    import sys

    frame, names = sys._getframe(), []
    while frame:
        names.append(frame.f_code.co_name)
        for value in frame.f_locals.values():
            if type(value).__name__ == "WorkerServer":
                for play, *_ in value._episodes.values():
                    play._environment.state.counter = 999
                return "reached the server"
        frame = frame.f_back
    return "blocked: " + ",".join(names)


@attack("plays")
def walk_the_frames_of_an_exception(info):
    try:
        1 / 0
    except ZeroDivisionError as error:
        frame = error.__traceback__.tb_frame.f_back
    while frame:
        if "self" in frame.f_locals and type(frame.f_locals["self"]).__name__ == "WorkerServer":
            return f"reached the server: {len(frame.f_locals['self']._episodes)} plays"
        frame = frame.f_back
    return "blocked: no such frame"


@attack("plays")
def walk_the_frames_of_a_generator(info):
    def climb():
        frame = made.gi_frame.f_back
        while frame:
            if "self" in frame.f_locals and type(frame.f_locals["self"]).__name__ == "WorkerServer":
                yield f"reached the server: {len(frame.f_locals['self']._episodes)} plays"
            frame = frame.f_back
        yield "blocked: no such frame"

    made = climb()
    return next(made)


@attack("plays")
def walk_the_frames_in_the_text_of_an_exception(info):
    class Curious(Exception):
        def __str__(self):
            import sys

            frame = sys._getframe()
            while frame:
                for value in frame.f_locals.values():
                    if type(value).__name__ == "WorkerServer":
                        for play, *_ in value._episodes.values():
                            play._environment.state.counter = 999
                        return "reached the server"
                frame = frame.f_back
            return "blocked"

    raise Curious


@attack("plays")
def walk_the_frames_in_the_text_of_a_base_exception(info):
    class Curious(BaseException):
        def __str__(self):
            import gc

            for found in gc.get_objects():
                if type(found).__name__ == "LabState" and found.token == "B":
                    found.counter = 999
            return "changed all"

    raise Curious


@attack("plays")
def walk_the_frames_in_the_text_of_our_own_errors(info):
    from trajsmith.records import InputError

    class Curious(InputError):
        def __str__(self):
            import gc

            for found in gc.get_objects():
                if type(found).__name__ == "LabState" and found.token == "B":
                    found.counter = 999
            return "changed all"

    raise Curious("x")


@attack("plays")
def watch_in_a_message_of_our_own_errors(info):
    from trajsmith.records import EnvironmentFault

    class Curious(str):
        def __getitem__(self, key):
            import gc

            for found in gc.get_objects():
                if type(found).__name__ == "LabState" and found.token == "B":
                    found.counter = 999
            return "changed all"

    fault = EnvironmentFault("crash", "lab", "x")
    fault.message = Curious("x")
    raise fault


@attack("plays")
def watch_in_a_destructor(info):
    class Late:
        def __del__(self):
            import gc

            for found in gc.get_objects():
                if type(found).__name__ == "LabState" and found.token == "B":
                    found.counter = 999

    cycle = [Late()]
    cycle.append(cycle)
    return "x"


@attack("plays")
def watch_every_call(info):
    import sys

    def spy(frame, event, argument):
        server = frame.f_locals.get("self")
        if type(server).__name__ == "WorkerServer":
            for play, *_ in server._episodes.values():
                play._environment.state.counter = 999

    sys.setprofile(spy)
    return "did: watches"


@attack("plays")
def trace_every_line(info):
    import sys

    sys.settrace(lambda *_: None)
    return "did: traces"


@attack("plays")
def watch_audit_events(info):
    import sys

    sys.addaudithook(lambda *_: None)


@attack("plays")
def watch_the_collector(info):
    import gc

    def callback(phase, _):
        for found in gc.get_objects():
            if type(found).__name__ == "LabState" and found.token == "B":
                found.counter = 999

    gc.callbacks.append(callback)
    return "armed"


@attack("plays")
def watch_unraisable_errors(info):
    import sys

    sys.unraisablehook = print
    sys.excepthook = print
    return "set"


@attack("plays")
def wait_for_a_weak_reference(info):
    import weakref

    class Mark:
        pass

    def callback(_):
        type(info["me"]).get = lambda self: {"token": "FORGED", "counter": 999}

    mark = Mark()
    type(info["me"]).kept = weakref.ref(mark, callback)
    del mark
    return "armed"
