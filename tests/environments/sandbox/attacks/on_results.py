"""Results that break what reads them: not JSON, without end, foreign classes, foreign errors."""
# ruff: noqa - attacks are written as attackers write

from attacks.catalog import attack


@attack("results")
def result_of_200_megabytes(info):
    return "x" * 200_000_000


@attack("results")
def result_of_many_small_things(info):
    return [{"x": number} for number in range(1_000_000)]


@attack("results")
def result_that_nests_deeply(info):
    made = []
    for _ in range(100_000):
        made = [made]
    return made


@attack("results")
def result_that_nests_as_deep_as_parsers_go(info):
    made = 1
    for _ in range(1100):
        made = {"x": made}
    return made


@attack("results")
def result_that_holds_itself(info):
    made = {}
    made["self"] = made
    return made


@attack("results")
def result_that_is_no_number(info):
    return {"x": float("nan"), "y": [float("inf")]}


@attack("results")
def result_that_is_no_text(info):
    return "\ud800"


@attack("results")
def result_with_a_key_that_is_no_text(info):
    return {"\udfff": 1, 2: 3}


@attack("results")
def result_of_bytes(info):
    return b"\xff\xfe"


@attack("results")
def result_of_a_large_number(info):
    return 10**5000


@attack("results")
def result_of_an_object(info):
    return object()


@attack("results")
def result_of_a_function(info):
    return print


@attack("results")
def result_of_a_class_that_is_a_dict(info):
    class Evil(dict):
        def items(self):
            while True:
                pass

        __iter__ = keys = values = __len__ = items

    return Evil(x=1)


@attack("results")
def result_of_a_class_that_is_a_text(info):
    class Evil(str):
        def __str__(self):
            while True:
                pass

        encode = __len__ = __getitem__ = __hash__ = __str__

    return {"x": Evil("y")}


@attack("results")
def result_of_a_class_that_is_a_list(info):
    class Evil(list):
        def __iter__(self):
            while True:
                yield self

        def __len__(self):
            return 2**62

    return Evil([1])


@attack("results")
def result_of_a_class_that_is_a_number(info):
    class Evil(int):
        def __index__(self):
            while True:
                pass

        __int__ = __str__ = __repr__ = __index__

    return Evil(5)


@attack("results")
def result_without_end(info):
    while True:
        yield 1


@attack("results")
def result_whose_class_lies(info):
    class Evil:
        @property
        def __class__(self):
            while True:
                pass

        __dict__ = property(lambda self: 1 / 0)

    return Evil()


@attack("results")
def result_of_a_model_that_hangs(info):
    from pydantic import BaseModel, model_serializer

    class Evil(BaseModel):
        @model_serializer
        def show(self):
            while True:
                pass

    return Evil()


@attack("results")
def result_that_is_ours(info):
    from trajsmith.environments.session import ToolResult

    return ToolResult(object(), "an error that there is not")


@attack("results")
def error_whose_text_hangs(info):
    class Evil(Exception):
        def __str__(self):
            while True:
                pass

        __repr__ = __str__

    raise Evil


@attack("results")
def error_whose_text_is_no_text(info):
    class Evil(Exception):
        def __str__(self):
            return 7

    raise Evil


@attack("results")
def error_whose_text_is_long(info):
    raise ValueError("x" * 100_000_000)


@attack("results")
def error_whose_text_is_no_unicode(info):
    raise ValueError("\ud800 \x00 \x1b[31m")


@attack("results")
def error_whose_name_hangs(info):
    class Meta(type):
        @property
        def __name__(cls):
            while True:
                pass

    class Evil(Exception, metaclass=Meta):
        pass

    raise Evil


@attack("results")
def error_with_an_endless_chain(info):
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    raise one


@attack("results")
def error_in_a_group(info):
    raise BaseExceptionGroup("many", [KeyboardInterrupt(), ValueError()])


@attack("results")
def error_of_ours_with_a_kind_of_its_own(info):
    from trajsmith.records import EnvironmentFault

    raise EnvironmentFault(object(), object(), "x")


@attack("results")
def error_of_ours_with_a_tool_of_its_own(info):
    from trajsmith.records import EnvironmentFault

    raise EnvironmentFault("crash", "lab", "x", {1, 2})


@attack("results")
def error_of_ours_that_lost_its_message(info):
    from trajsmith.records import EnvironmentFault

    fault = EnvironmentFault("crash", "lab", "x")
    fault.message = None
    raise fault


@attack("results")
def error_of_ours_whose_message_hangs(info):
    from trajsmith.records import EnvironmentFault

    class Evil(str):
        def __getitem__(self, key):
            while True:
                pass

    fault = EnvironmentFault("crash", "lab", "x")
    fault.message = Evil("x")
    raise fault


@attack("results")
def error_of_ours_whose_text_hangs(info):
    from trajsmith.records import InputError

    class Evil(InputError):
        def __str__(self):
            while True:
                pass

    raise Evil


@attack("results")
def refusal_whose_text_hangs(info):
    from trajsmith.environments import ToolError

    class Evil(ToolError):
        def __str__(self):
            while True:
                pass

    raise Evil


@attack("results")
def refusal_whose_text_is_no_unicode(info):
    from trajsmith.environments import ToolError

    raise ToolError("\ud800")


@attack("results")
def refusal_of_200_megabytes(info):
    from trajsmith.environments import ToolError

    raise ToolError("x" * 200_000_000)


@attack("results")
def time_limit_raised_by_itself(info):
    import sys

    for module in list(sys.modules.values()):
        found = getattr(module, "CallTimeout", None)
        if found is not None:
            raise found
    return "blocked"


@attack("results")
def state_that_is_no_json(info):
    info["me"].state.__dict__["counter"] = object()
    return "set"


@attack("results")
def state_that_holds_no_number(info):
    info["me"].state.__dict__["counter"] = float("nan")
    return "set"


@attack("results")
def state_that_grows(info):
    info["me"].state.notes["x"] = "y" * 100_000_000
    return "set"


@attack("results")
def state_that_holds_itself(info):
    notes = info["me"].state.notes
    notes.__class__
    info["me"].state.__dict__["notes"] = {"x": notes}
    notes["self"] = notes
    return "set"


@attack("results")
def state_that_is_another_class(info):
    info["me"].state = object()
    return "set"


@attack("results")
def state_that_is_no_state(info):
    info["me"].state.__dict__.clear()
    return "set"


@attack("results")
def state_with_a_field_of_its_own(info):
    info["me"].state.__dict__["more"] = "x"
    object.__setattr__(info["me"].state, "__pydantic_fields_set__", None)
    return "set"


@attack("results")
def state_whose_text_hangs(info):
    class Evil(str):
        def __str__(self):
            while True:
                pass

        encode = __len__ = __iter__ = __str__

    info["me"].state.__dict__["token"] = Evil("A")
    return "set"
