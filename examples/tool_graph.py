"""The tool graph of an environment as a NetworkX graph: which tool gives what another needs.

python examples/tool_graph.py [ENVIRONMENT]
"""

import sys

import networkx as nx

import trajsmith as ts


def main() -> None:
    graph = ts.build_graph(sys.argv[1] if sys.argv[1:] else "retail")

    tools = graph.to_networkx(parameters=False)
    print(f"{len(tools)} tools, {tools.number_of_edges()} edges")
    hubs = sorted(nx.pagerank(tools.reverse(), weight="weight").items(), key=lambda item: -item[1])
    print("most useful to others:", [name for name, _ in hubs[:3]])

    target = max(tools, key=lambda name: len(nx.ancestors(tools, name)))
    print("before", target, "can come:", sorted(nx.ancestors(tools, target))[:5])
    for source, _, edge in tools.in_edges(target, data=True):
        if edge["weight"] == 3:  # the target relies on it
            print(" ", source, [f"{output} -> {path}" for output, path, _ in edge["links"]])

    whole = graph.to_networkx()  # parameters are nodes too
    internal = [name for name, node in whole.nodes(data=True) if node.get("kind") == "internal"]
    print("parameters that only tools can give:", internal[:3])


if __name__ == "__main__":
    main()
