"""Tell servers whose tools need the world outside from services that keep their own records."""

from collections import Counter

from trajsmith.envgen.generate.tool_lists import ToolList
from trajsmith.phrasing import split_identifier, word_set

_OUTSIDE = {
    "web pages": word_set(
        "browser playwright puppeteer navigate screenshot scrape scraping crawl crawler html url tab click dom "
        "selenium browserbase webpage web wikipedia google duckduckgo searx tavily exa perplexity sitemap"
    ),
    "a computer": word_set(
        "execute shell terminal command powershell process ssh filesystem clipboard keyboard mouse script eval repl "
        "jupyter kernel sandbox docker adb applescript desktop disassemble decompile ghidra ida gdb debugger"
    ),
    "live market data": word_set(
        "ohlcv ticker kline orderbook stock candle quote crypto coin forex funding historical trading exchange "
        "dividend ccxt margin leverage quant xtquantai"
    ),
    "a blockchain": word_set(
        "wallet blockchain ethereum solana evm onchain erc20 nft gas tx contract ens defi swap token0 chain "
        "chainid abi tron bitcoin lightning nostr zap"
    ),
    "weather and maps": word_set("weather forecast geocode directions latitude elevation distance airquality"),
    "a model": word_set("llm completion embed embedding transcribe tts ocr translate summarize infer"),
    "a database server": word_set("sql postgres mysql sqlite duckdb clickhouse bigquery snowflake cypher"),
}
SHARE = 0.4
"""Share of a server's tools from which on it counts as one that needs something outside."""


def find_outside_need(tool_list: ToolList) -> str:
    """Return what most tools of a server need from outside; empty if they keep records of their own.

    Words of the server's own name count as those of every tool.
    """
    of_server = set(split_identifier(tool_list.server.rpartition("/")[2]))
    needs = Counter[str]()
    for tool in tool_list.tools:
        words = of_server | set(split_identifier(str(tool["name"])))
        needs.update(need for need, telling in _OUTSIDE.items() if words & telling)
    need, count = needs.most_common(1)[0] if needs else ("", 0)
    return need if tool_list.tools and count / len(tool_list.tools) >= SHARE else ""
