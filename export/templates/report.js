"use strict";
(() => {
  const items = JSON.parse(document.getElementById("items").textContent);
  const byId = (id) => document.getElementById(id);
  const list = byId("list"), detail = byId("detail"), search = byId("search");
  const environment = byId("by-environment"), outcome = byId("by-outcome");
  let current = null;

  // Everything shown goes through text nodes: tool output may hold markup.
  const make = (tag, options = {}, ...children) => {
    const node = document.createElement(tag);
    if (options.class) node.className = options.class;
    if (options.title) node.title = options.title;
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  };
  const pretty = (value) => JSON.stringify(value, null, 2);
  const inline = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const parsed = (text) => { try { return pretty(JSON.parse(text)); } catch { return text; } };
  const words = (name) => name.replaceAll("_", " ");
  const fold = (label, open, ...body) => {
    const node = make("details", {}, make("summary", {}, ...label), make("div", { class: "body" }, ...body));
    node.open = open;
    return node;
  };
  const chip = (text, kind = "") => make("span", { class: "chip " + kind }, text);
  const verdictOf = (item) => (item.accepted ? "accepted" : words(item.outcome));
  const kindOf = (item) => (item.accepted ? "good" : ["undecided", "environment_error"].includes(item.outcome) ? "unsure" : "no");
  const firstAsk = (item) => (item.messages.find((message) => message.role === "user") || { content: item.scenario }).content;
  const briefArguments = (value) => Object.entries(value || {}).map(([key, inner]) => `${key}: ${inline(inner)}`).join(", ");
  const short = (text, length) => (text.length > length ? text.slice(0, length) + "…" : text);

  for (const item of items) item.text = JSON.stringify([item.id, item.task, item.messages, item.scenario, item.reasons]).toLowerCase();

  const option = (select, value, count) => {
    const node = make("option", {}, `${words(value)} (${count})`);
    node.value = value;
    select.append(node);
  };
  const counted = (keys) => [...keys.reduce((all, key) => all.set(key, (all.get(key) || 0) + 1), new Map())].sort();
  counted(items.map((item) => item.environment)).forEach(([name, count]) => option(environment, name, count));
  const taken = items.filter((item) => item.accepted).length;
  if (taken) option(outcome, "accepted", taken);
  if (taken < items.length) option(outcome, "not_accepted", items.length - taken);
  counted(items.map((item) => item.outcome)).forEach(([name, count]) => option(outcome, name, count));

  const fits = (item) => {
    const wanted = outcome.value;
    const right = !wanted || (wanted === "accepted" ? item.accepted : wanted === "not_accepted" ? !item.accepted : item.outcome === wanted);
    return right && (!environment.value || item.environment === environment.value)
      && search.value.toLowerCase().split(/\s+/).every((word) => item.text.includes(word));
  };

  const showList = () => {
    const found = items.filter(fits);
    byId("shown").textContent = `${found.length} shown`;
    list.replaceChildren(...found.map((item) => {
      const node = make("button", { class: "item" },
        make("div", { class: "top" }, make("span", {}, item.environment), chip(verdictOf(item), kindOf(item))),
        make("div", { class: "ask" }, short(firstAsk(item), 160)));
      node.type = "button";
      node.setAttribute("role", "option");
      node.setAttribute("aria-selected", String(item === current));
      node.addEventListener("click", () => choose(item, true));
      return node;
    }));
    if (!found.length) list.append(make("p", { class: "none" }, "Nothing fits the filters."));
    if (!found.includes(current)) choose(found[0] || null, false);
  };

  const choose = (item, asked) => {
    current = item;
    const fitting = items.filter(fits);
    list.querySelectorAll(".item").forEach((node, index) => node.setAttribute("aria-selected", String(fitting[index] === item)));
    detail.replaceChildren(...(item ? conversation(item) : [make("p", { class: "none" }, "No conversation chosen.")]));
    if (!asked) return;
    history.replaceState(null, "", "#" + item.id);
    detail.scrollIntoView({ block: "start", behavior: "instant" });
  };

  const conversation = (item) => {
    const back = make("a", {}, "← back to the list");
    back.id = "back";
    back.href = "#gallery";
    const facts = Object.entries(item.facts).filter(([, value]) => value !== "").map(([key, value]) => chip(`${key}: ${words(String(value))}`));
    return [
      back,
      make("h3", {}, item.environment + " "),
      make("small", {}, `${item.id} · ${item.task}`),
      make("div", { class: "meta" }, chip(verdictOf(item), kindOf(item)), ...item.reasons.map((reason) => chip(words(reason), "no")), ...facts),
      hiddenSide(item),
      ...played(item),
    ];
  };

  const mark = (passed) => (passed === true ? chip("passed", "good") : passed === false ? chip("failed", "no") : chip("could not tell", "unsure"));
  const plain = (rows) => make("ul", { class: "plain" }, ...rows.map((row) => make("li", {}, ...row)));

  const hiddenSide = (item) => {
    const body = [make("h4", {}, "User"), make("p", {}, `${item.persona.name}, ${item.persona.role} (${item.persona.style})`), make("p", {}, item.scenario)];
    item.turns.forEach((turn, index) => {
      body.push(make("h4", {}, `Turn ${index + 1}` + (turn.start === undefined ? " (never reached)" : "")));
      if (turn.intent) body.push(make("p", {}, turn.intent));
      if (turn.known?.length) body.push(plain(turn.known.map((known) => ["knows ", make("b", {}, known.label), `: ${known.said} `, known.at_once ? null : chip("only when asked")])));
      if (turn.gold?.length) body.push(plain(turn.gold.map((call) => [chip(call.actor === "user" ? "user " + call.effect : call.effect), " ", make("code", {}, `${call.name}(${typeof call.arguments === "string" ? call.arguments : briefArguments(call.arguments)})`)])));
      if (turn.facts?.length) body.push(make("p", {}, "must tell: ", make("code", {}, turn.facts.map(inline).join(", "))));
    });
    body.push(make("h4", {}, "Checks"), plain(item.checks.map((check) => [mark(check.passed), ` ${check.says} `, make("small", {}, check.detail)])));
    if (item.rubric?.length) body.push(make("h4", {}, "Rubric"), plain(item.rubric.map((each) => [mark(each.met), ` ${each.says} `, make("small", {}, each.detail)])));
    const told = (value) => (value === null ? "could not tell" : value === true ? "yes" : value === false ? "no" : String(value));
    const numbers = [...Object.entries(item.matches).map(([key, value]) => `${key} match: ${told(value)}`), ...Object.entries(item.rewards).map(([key, value]) => `reward ${key}: ${Number(value.toFixed(4))}`)];
    body.push(make("div", { class: "meta" }, ...numbers.map((text) => chip(text))));
    const failed = item.checks.filter((check) => check.passed !== true).length;
    const label = `Hidden from the agent: user, gold calls, checks (${item.checks.length - failed} of ${item.checks.length} passed)`;
    const node = fold([make("b", {}, label)], false, ...body);
    node.classList.add("hidden-side");
    return node;
  };

  const played = (item) => {
    const nodes = [];
    item.messages.forEach((message, index) => {
      const turn = item.turns.findIndex((one) => one.start === index);
      if (turn >= 0) nodes.push(make("div", { class: "turn-head" }, make("b", {}, `Turn ${turn + 1}`), make("span", {}, item.turns[turn].intent || "")));
      nodes.push(shownMessage(message));
      const ended = item.turns.findIndex((one) => one.stop === index + 1);
      if (ended >= 0) nodes.push(effects(item.turns[ended]));
    });
    return nodes;
  };

  const shownMessage = (message) => {
    const node = make("div", { class: "message " + message.role });
    if (message.role === "system") {
      node.append(fold([make("b", {}, "system "), make("small", {}, short(message.content, 90))], false, make("pre", {}, message.content)));
      return node;
    }
    if (message.role === "tool") {
      node.append(fold([make("small", {}, "result of "), make("span", { class: "call-name" }, message.name), make("small", {}, "  " + short(message.content, 70))], false, make("pre", {}, parsed(message.content))));
      return node;
    }
    node.append(make("div", { class: "who" }, message.role === "user" ? "user" : "agent"));
    if (message.reasoning) node.append(fold([make("small", {}, "reasoning")], false, make("pre", {}, message.reasoning)));
    if (message.content) node.append(make("div", { class: "bubble" }, message.content));
    for (const call of message.calls || []) {
      const brief = typeof call.arguments === "string" ? call.arguments : briefArguments(call.arguments);
      node.append(fold([make("small", {}, "calls "), make("span", { class: "call-name" }, call.name), make("small", {}, `  ${short(brief || "no arguments", 90)}`)], false,
        make("pre", {}, typeof call.arguments === "string" ? call.arguments : pretty(call.arguments))));
    }
    return node;
  };

  const signs = { add: "+ add", remove: "− remove", replace: "± set" };
  const effects = (turn) => {
    if (!turn.effects?.length) return make("div", { class: "effects still" }, "The state did not change in this turn.");
    const node = make("div", { class: "effects" }, make("b", {}, "State after this turn"));
    for (const effect of turn.effects) {
      node.append(make("div", {}, make("span", { class: "call-name" }, effect.tool), " ",
        effect.actor === "user" ? chip("by the user") : null, effect.error ? chip(words(effect.error), "no") : null));
      for (const change of effect.changes) {
        const value = change.op === "remove" ? "" : " = " + (typeof change.value === "object" && change.value !== null ? pretty(change.value) : JSON.stringify(change.value));
        const path = change.path.split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~")).join(" › ");
        node.append(make("div", { class: "change" }, make("span", { class: "op " + change.op }, signs[change.op] || change.op),
          value.includes("\n") ? make("div", {}, make("code", {}, path), make("pre", {}, value.slice(3))) : make("code", {}, path + value)));
      }
    }
    return node;
  };

  window.addEventListener("hashchange", () => {
    const wanted = items.find((item) => "#" + item.id === location.hash);
    if (!wanted) return;
    [search, environment, outcome].forEach((node) => { node.value = ""; });
    showList();
    choose(wanted, true);
  });
  [search, environment, outcome].forEach((node) => node.addEventListener("input", showList));
  current = items.find((item) => "#" + item.id === location.hash) || items[0] || null;
  showList();
  choose(current, false);
})();
