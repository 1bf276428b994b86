"""Sums, without Python's `eval`: the sandbox does not compile anything while a call runs."""

import re

_TOKEN = re.compile(r"\s*(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+|\*\*|//|[-+*/%()])")
_LARGEST_POWER = 1000

Number = int | float


def evaluate(expression: str, *namespaces: object) -> Number:
    """The value of an expression of numbers, + - * / // % ** and parentheses, as Python has it.

    Raises:
        SyntaxError: It is something else.
        ZeroDivisionError, OverflowError: It has no value.
    """
    return _Parser(expression).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        place = 0
        while text[place:].strip():
            match = _TOKEN.match(text, place)
            if match is None:
                raise SyntaxError("invalid syntax")
            self._tokens.append(match[1])
            place = match.end()
        self._tokens.reverse()

    def parse(self) -> Number:
        value = self._sum()
        if self._tokens:
            raise SyntaxError("invalid syntax")
        return value

    def _next(self, *wanted: str) -> str | None:
        return self._tokens.pop() if self._tokens and self._tokens[-1] in wanted else None

    def _sum(self) -> Number:
        value = self._product()
        while sign := self._next("+", "-"):
            other = self._product()
            value = value + other if sign == "+" else value - other
        return value

    def _product(self) -> Number:
        value = self._signed()
        while sign := self._next("*", "/", "//", "%"):
            other = self._signed()
            if sign == "*":
                value = value * other
            elif sign == "/":
                value = value / other
            elif sign == "//":
                value = value // other
            else:
                value = value % other
        return value

    def _signed(self) -> Number:
        sign = self._next("+", "-")
        if sign is not None:
            value = self._signed()
            return -value if sign == "-" else value
        return self._power()

    def _power(self) -> Number:
        base = self._atom()
        if self._next("**"):
            exponent = self._signed()
            if abs(exponent) > _LARGEST_POWER:
                raise OverflowError("exponent too large")
            return base**exponent
        return base

    def _atom(self) -> Number:
        if self._next("("):
            value = self._sum()
            if not self._next(")"):
                raise SyntaxError("'(' was never closed")
            return value
        if not self._tokens or (not self._tokens[-1][0].isdecimal() and self._tokens[-1][0] != "."):
            raise SyntaxError("invalid syntax")
        token = self._tokens.pop()
        return int(token) if token.isdecimal() else float(token)
