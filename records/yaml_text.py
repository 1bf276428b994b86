"""The one way to read YAML from outside: safe tags only, and no text that grows or never ends when it is read."""

from functools import lru_cache
from typing import Any

import yaml

DEEPEST = 100
"""Mappings and lists inside each other."""
MOST_GROWTH = 10
"""Times that aliases may make a text larger, beyond `FREE_VALUES`."""
FREE_VALUES = 100_000


class YamlLimitError(yaml.MarkedYAMLError):
    """YAML that is valid and refused all the same, since reading it would not end well."""

    def __init__(self, problem: str, node: yaml.Node | None = None) -> None:
        super().__init__(problem=problem, problem_mark=node.start_mark if node else None)


def compose_yaml(text: str, loader_class: Any) -> tuple[yaml.Node | None, Any]:
    """Parse YAML with a loader class; returns its tree of nodes, which knows lines, and its data.

    Raises:
        yaml.YAMLError: It is no YAML, is nested too deeply, has aliases that stand in themselves or multiply, a number
            without end, or characters that nothing can store (NUL, halves of a pair).
    """
    try:
        loader = _limit_depth(loader_class)(text)
    except (ValueError, yaml.YAMLError) as error:  # UnicodeEncodeError of the C loader is a ValueError
        raise _describe(error) from error
    try:
        root = loader.get_single_node()
        if root is None:
            return None, None
        _measure(root)
        return root, loader.construct_document(root)
    except (ValueError, TypeError, AttributeError) as error:  # of constructors: numbers, dates, keys without a hash
        raise _describe(error) from error
    finally:
        loader.dispose()


@lru_cache(maxsize=16)
def _limit_depth(loader_class: Any) -> Any:
    """Derive a loader that stops at a depth; that of libyaml would overflow the stack of the process."""

    class Limited(loader_class):  # type: ignore[misc]
        depth = 0

        def descend_resolver(self, parent: Any, index: Any) -> None:
            """Count a level; composers call this for every node."""
            self.depth += 1
            if self.depth > DEEPEST:
                raise YamlLimitError(f"nested deeper than {DEEPEST} levels", parent)

        def ascend_resolver(self) -> None:
            self.depth -= 1

    return Limited


def _describe(error: Exception) -> yaml.YAMLError:
    if isinstance(error, yaml.reader.ReaderError):
        return YamlLimitError(f"the character {error.character!r} is not allowed at position {error.position}")
    if isinstance(error, yaml.YAMLError):
        return error
    if isinstance(error, UnicodeError):
        return YamlLimitError("it is no Unicode text")
    return YamlLimitError(str(error).partition(";")[0])


def _measure(root: yaml.Node) -> None:
    """Count the values that a tree stands for, with every alias written out.

    Raises:
        YamlLimitError: They are too many, or without end.
    """
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    stack = [(root, False)]
    while stack:
        node, complete = stack.pop()
        if complete:
            open_nodes.discard(id(node))
            sizes[id(node)] = 1 + sum(sizes[id(child)] for child in _children(node))
            continue
        if id(node) in sizes:
            continue
        if id(node) in open_nodes:
            raise YamlLimitError("an alias stands inside what it is an alias of", node)
        if isinstance(node, yaml.ScalarNode):
            _check_text(node)
            sizes[id(node)] = 1
            continue
        open_nodes.add(id(node))
        stack.append((node, True))
        stack.extend((child, False) for child in _children(node))
    if sizes[id(root)] > max(FREE_VALUES, MOST_GROWTH * len(sizes)):
        raise YamlLimitError(f"its aliases make {sizes[id(root)]:.3g} values of {len(sizes)}")


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _check_text(node: yaml.ScalarNode) -> None:
    if "\0" in node.value:
        raise YamlLimitError("a text has a NUL character", node)
    if not node.value.isascii() and any("\ud800" <= character <= "\udfff" for character in node.value):
        raise YamlLimitError("a text has half a character (a lone surrogate)", node)
