"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const texts = data.texts;

  // Everything shown goes through text nodes: descriptions may hold markup.
  const make = (tag, options = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(options)) {
      if (key === "class") node.className = value;
      else if (key === "click") node.addEventListener("click", value);
      else if (key === "style") node.style.cssText = value;
      else node.setAttribute(key, value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  };

  // The graph, unpacked from its columns

  const hue = (number) => (210 + number * 137.508) % 360;
  const servers = data.servers.map(([name, x, y, r], number) => ({ name, short: name.split("/").pop() || name, x, y, r, number, hue: hue(number), on: true, tools: [] }));
  const tools = data.tools.map(([full, name, server, description, write, x, y], number) => {
    const tool = { full, name, server: servers[server], description, write, x, y, number, out: [], in: [], parameters: [] };
    tool.server.tools.push(tool);
    return tool;
  });
  const byName = new Map(tools.map((tool) => [tool.full, tool]));
  const table = data.parameters;
  for (let row = 0; row < table.rows; row++) {
    const tool = byName.get(texts[table.tool[row]]);
    tool.parameters.push({ name: texts[table.parameter[row]], kind: texts[table.kind[row]], required: table.required[row], evidence: table.evidence[row].map((place) => texts[place]) });
  }
  const columns = data.edges, links = columns.links, edges = [];
  for (let row = 0, at = 0; row < columns.rows; row++) {
    const edge = { source: byName.get(texts[columns.source[row]]), target: byName.get(texts[columns.target[row]]), weight: columns.weight[row], score: columns.score[row], evidence: columns.evidence[row].map((place) => texts[place]), links: [] };
    for (const end = at + links.counts[row]; at < end; at++) edge.links.push({ output: texts[links.output[at]], input: texts[links.input[at]], score: links.score[at] });
    edge.far = edge.source.server !== edge.target.server;
    edge.source.out.push(edge);
    edge.target.in.push(edge);
    edges.push(edge);
  }
  const tried = new Map(), proof = data.evidence;
  if (proof) for (let row = 0; row < proof.rows; row++) {
    const key = ["source", "target", "output", "input"].map((name) => texts[proof[name][row]]).join("\n");
    const found = Object.fromEntries(Object.keys(proof).filter((name) => Array.isArray(proof[name])).map((name) => [name, proof[name][row]]));
    tried.set(key, [...(tried.get(key) || []), { ...found, by: texts[found.by] }]);
  }
  const kindOf = (edge) => (edge.weight >= 3 ? "strong" : edge.weight === 2 ? "weak" : "guess");
  const count = (number, one, many) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
  byId("counts").textContent = `${count(tools.length, "tool", "tools")}, ${count(edges.length, "edge", "edges")}, ${count(servers.length, "server", "servers")}`;
  for (const kind of ["strong", "weak", "guess"]) byId(kind + "-count").textContent = edges.filter((edge) => kindOf(edge) === kind).length;
  byId("between-count").textContent = edges.filter((edge) => edge.far).length;

  // A large graph is drawn around one tool: what feeds it on its left, what it feeds on its right.

  const large = Boolean(data.large), COLUMN = 40, LEVELS = 2;
  let drawn = large ? [] : tools;
  const focus = (tool) => {
    const place = new Map([[tool, 0]]);
    for (const [side, ways, end] of [[-1, "in", "source"], [1, "out", "target"]])
      for (let level = 1, last = [tool]; level <= LEVELS; level++) {
        const best = new Map();
        for (const one of last) for (const edge of one[ways]) if (!place.has(edge[end])) best.set(edge[end], Math.max(best.get(edge[end]) || 0, edge.weight + edge.score));
        last = [...best].sort((a, b) => b[1] - a[1]).slice(0, COLUMN).map(([one]) => one);
        for (const one of last) place.set(one, side * level);
      }
    const columns = new Map();
    for (const [one, column] of place) columns.has(column) ? columns.get(column).push(one) : columns.set(column, [one]);
    for (const [column, list] of columns) list.forEach((one, row) => { one.x = column * 260; one.y = (row - (list.length - 1) / 2) * 34; });
    drawn = [...place.keys()];
  };

  // The drawing

  const canvas = byId("view"), pen = canvas.getContext("2d");
  const RADIUS = 6;
  let view = { x: 0, y: 0, scale: 1 }, size = { width: 0, height: 0 }, colours = {}, shown = [], selected = null, over = null, waiting = false;

  const readColours = () => {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["bg", "ink", "soft", "strong", "weak", "disc", "disc-line", "accent", "halo", "light"]) colours[name] = style.getPropertyValue("--" + name).trim();
    draw();
  };
  const screen = (point) => [(point.x - view.x) * view.scale + size.width / 2, (point.y - view.y) * view.scale + size.height / 2];
  const world = (x, y) => [(x - size.width / 2) / view.scale + view.x, (y - size.height / 2) / view.scale + view.y];
  const fill = (tool) => `hsl(${tool.server.hue} 55% ${colours.light})`;

  const passes = (edge) => edge.source.server.on && edge.target.server.on && edge.score >= Number(byId("score").value)
    && byId(kindOf(edge)).checked && (!edge.far || byId("between").checked);
  const refilter = () => {
    const there = large ? new Set(drawn) : null;
    shown = large ? drawn.flatMap((tool) => tool.out).filter((edge) => there.has(edge.target) && passes(edge)) : edges.filter(passes);
    draw();
  };

  // Edges bend to their right, so that A to B and B to A lie apart.
  const bend = (edge) => {
    const [ax, ay] = screen(edge.source), [bx, by] = screen(edge.target);
    const dx = bx - ax, dy = by - ay;
    return [ax, ay, (ax + bx) / 2 - dy * 0.12, (ay + by) / 2 + dx * 0.12, bx, by];
  };
  const strokeEdges = (list, colour, width, alpha) => {
    pen.strokeStyle = colour; pen.lineWidth = width; pen.globalAlpha = alpha;
    pen.beginPath();
    for (const edge of list) {
      const [ax, ay, cx, cy, bx, by] = bend(edge);
      if (Math.max(ax, bx) < 0 || Math.min(ax, bx) > size.width || Math.max(ay, by) < 0 || Math.min(ay, by) > size.height) continue;
      pen.moveTo(ax, ay);
      pen.quadraticCurveTo(cx, cy, bx, by);
    }
    pen.stroke();
    pen.globalAlpha = 1;
  };
  const arrow = (edge, colour) => {
    const [, , cx, cy, bx, by] = bend(edge), angle = Math.atan2(by - cy, bx - cx), gap = radius() + 2, tip = 8;
    const x = bx - Math.cos(angle) * gap, y = by - Math.sin(angle) * gap;
    pen.fillStyle = colour;
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x - Math.cos(angle - 0.4) * tip, y - Math.sin(angle - 0.4) * tip);
    pen.lineTo(x - Math.cos(angle + 0.4) * tip, y - Math.sin(angle + 0.4) * tip);
    pen.fill();
  };
  const radius = () => Math.max(2, Math.min(RADIUS * Math.sqrt(view.scale) * 1.15, 16));
  const mark = (tool, r) => {
    const [x, y] = screen(tool);
    if (x < -r || y < -r || x > size.width + r || y > size.height + r) return;
    pen.beginPath();
    if (tool.write) pen.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
    else pen.arc(x, y, r, 0, 7);
    pen.fill();
  };
  const label = (text, x, y, colour, font) => {
    pen.font = font; pen.textAlign = "center"; pen.lineWidth = 3.5; pen.lineJoin = "round";
    pen.strokeStyle = colours.halo; pen.strokeText(text, x, y);
    pen.fillStyle = colour; pen.fillText(text, x, y);
  };
  const touching = () => (selected === null ? [] : selected.source ? [selected] : [...selected.out, ...selected.in].filter(passes));

  const paint = () => {
    waiting = false;
    const ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, size.width, size.height);
    for (const server of large ? [] : servers) {
      if (!server.on) continue;
      const [x, y] = screen(server);
      pen.beginPath(); pen.arc(x, y, server.r * view.scale, 0, 7);
      pen.fillStyle = colours.disc; pen.fill();
      pen.strokeStyle = colours["disc-line"]; pen.lineWidth = 1; pen.stroke();
    }
    const dim = selected === null ? 1 : 0.3, crowd = Math.min(1, Math.sqrt(1500 / (shown.length + 1)));
    strokeEdges(shown.filter((edge) => edge.far), colours.weak, 0.7, 0.4 * dim * crowd);
    strokeEdges(shown.filter((edge) => !edge.far && kindOf(edge) === "weak"), colours.weak, 0.8, 0.75 * dim * Math.max(crowd, 0.5));
    pen.setLineDash([3, 4]);
    strokeEdges(shown.filter((edge) => !edge.far && kindOf(edge) === "guess"), colours.weak, 0.8, 0.75 * dim);
    pen.setLineDash([]);
    strokeEdges(shown.filter((edge) => !edge.far && edge.weight >= 3), colours.strong, 1.1, 0.75 * dim * Math.max(crowd, 0.6));
    const bright = touching(), near = new Set(bright.flatMap((edge) => [edge.source, edge.target]));
    if (selected && !selected.source) near.add(selected);
    strokeEdges(bright.filter((edge) => edge.weight < 3), colours.weak, 1.5, 1);
    strokeEdges(bright.filter((edge) => edge.weight >= 3), colours.strong, 2, 1);
    const r = radius();
    for (const tool of drawn) {
      if (!tool.server.on) continue;
      pen.globalAlpha = selected === null || near.has(tool) ? 1 : 0.35;
      pen.fillStyle = fill(tool);
      mark(tool, r);
    }
    pen.globalAlpha = 1;
    const pointed = selected !== null ? bright : view.scale > 1.6 && shown.length < 6000 ? shown : [];
    for (const edge of pointed) arrow(edge, edge.weight >= 3 ? colours.strong : colours.weak);
    if (selected && !selected.source) {
      const [x, y] = screen(selected);
      pen.strokeStyle = colours.ink; pen.lineWidth = 2;
      pen.beginPath(); pen.arc(x, y, r + 4, 0, 7); pen.stroke();
    }
    names(near, r);
  };

  // Names are put where there is room: selected ones first, then servers or tools, whichever the zoom calls for.
  const names = (near, r) => {
    const cells = new Map(), CELL = 80;
    const around = (box) => {
      const keys = [];
      for (let i = Math.floor((box.x - box.width / 2) / CELL); i <= (box.x + box.width / 2) / CELL; i++)
        for (let j = Math.floor((box.y - box.height / 2) / CELL); j <= (box.y + box.height / 2) / CELL; j++) keys.push(i * 4096 + j);
      return keys;
    };
    const take = (box) => { for (const key of around(box)) cells.has(key) ? cells.get(key).push(box) : cells.set(key, [box]); };
    const meets = (box) => (other) => Math.abs(other.x - box.x) < (other.width + box.width) / 2 && Math.abs(other.y - box.y) < (other.height + box.height) / 2;
    const room = (x, y, width, height) => {
      if (x + width / 2 < 0 || y + height < 0 || x - width / 2 > size.width || y - height > size.height) return false;
      const box = { x, y: y - height / 2 + 2, width, height };
      if (around(box).some((key) => (cells.get(key) || []).some(meets(box)))) return false;
      take(box);
      return true;
    };
    const close = view.scale > 0.75;
    if (close) for (const tool of drawn) {
      if (!tool.server.on) continue;
      const [x, y] = screen(tool);
      if (x > 0 && y > 0 && x < size.width && y < size.height) take({ x, y, width: r * 1.6, height: r * 1.6 });
    }
    const put = (text, x, y, colour, font, height, must) => {
      pen.font = font;
      if (room(x, y, pen.measureText(text).width + 6, height) || must) label(text, x, y, colour, font);
    };
    const plain = "12px system-ui, sans-serif", bold = "600 13px system-ui, sans-serif";
    const first = over && over.full ? [over] : [];
    for (const tool of [...first, ...near]) {
      const [x, y] = screen(tool);
      put(tool.name, x, y - r - 5, colours.ink, tool === selected || tool === over ? bold : plain, 14, tool === selected || tool === over);
    }
    for (const server of large ? [] : servers) {
      if (!server.on) continue;
      const [x, y] = screen(server), wide = server.r * view.scale;
      pen.font = bold;
      if (wide > 22 || servers.length < 30) put(shorten(server.short, Math.max(90, wide * 2.2)), x, y - wide - 5, colours.soft, bold, 15, false);
    }
    if (close || large) for (const tool of drawn) {
      if (!tool.server.on || near.has(tool)) continue;
      const [x, y] = screen(tool);
      put(tool.name, x, y - r - 5, selected ? colours.soft : colours.ink, plain, 13, false);
    }
  };
  const shorten = (text, width) => {
    while (text.length > 4 && pen.measureText(text).width > width) text = text.slice(0, -2).replace(/…?$/, "") + "…";
    return text;
  };
  const draw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(paint);
  };

  const resize = () => {
    const box = canvas.parentElement.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    size = { width: box.width, height: box.height };
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(box.height * ratio);
    draw();
  };
  const fit = () => {
    const on = large ? drawn.map((tool) => ({ x: tool.x, y: tool.y, r: 90 })) : servers.filter((server) => server.on);
    if (!on.length || !size.width) return;
    const left = Math.min(...on.map((s) => s.x - s.r)), right = Math.max(...on.map((s) => s.x + s.r));
    const top = Math.min(...on.map((s) => s.y - s.r)) - 20, bottom = Math.max(...on.map((s) => s.y + s.r));
    view = { x: (left + right) / 2, y: (top + bottom) / 2, scale: Math.min(size.width / (right - left + 40), size.height / (bottom - top + 40), 2.5) };
    draw();
  };
  const zoom = (factor, x = size.width / 2, y = size.height / 2) => {
    const [wx, wy] = world(x, y);
    view.scale = Math.min(12, Math.max(0.02, view.scale * factor));
    view.x = wx - (x - size.width / 2) / view.scale;
    view.y = wy - (y - size.height / 2) / view.scale;
    draw();
  };
  const go = (tool) => {
    if (large) return fit();
    view = { x: tool.x, y: tool.y, scale: Math.max(view.scale, 1.4) };
    draw();
  };

  // What lies under the pointer

  const toolAt = (x, y) => {
    let best = null, least = (radius() + 5) ** 2;
    for (const tool of drawn) {
      if (!tool.server.on) continue;
      const [tx, ty] = screen(tool), distance = (tx - x) ** 2 + (ty - y) ** 2;
      if (distance < least) { best = tool; least = distance; }
    }
    return best;
  };
  const distanceTo = (edge, x, y) => {
    const [ax, ay, cx, cy, bx, by] = bend(edge);
    if (Math.min(ax, bx, cx) - 8 > x || Math.max(ax, bx, cx) + 8 < x || Math.min(ay, by, cy) - 8 > y || Math.max(ay, by, cy) + 8 < y) return Infinity;
    let least = Infinity;
    for (let step = 0; step <= 24; step++) {
      const t = step / 24, s = 1 - t;
      least = Math.min(least, (s * s * ax + 2 * s * t * cx + t * t * bx - x) ** 2 + (s * s * ay + 2 * s * t * cy + t * t * by - y) ** 2);
    }
    return least;
  };
  const edgeAt = (x, y) => {
    const bright = touching();
    for (const list of bright.length ? [bright, shown] : [shown]) {
      let best = null, least = 49;
      for (const edge of list) {
        const distance = distanceTo(edge, x, y);
        if (distance < least) { best = edge; least = distance; }
      }
      if (best) return best;
    }
    return null;
  };

  // Evidence

  const detail = byId("detail"), right = byId("right");
  const chip = (text, kind = "") => make("span", { class: "chip " + kind }, text);
  const number = (score) => score.toFixed(2);
  const proved = (edge, link) => (tried.get([edge.source.full, edge.target.full, link.output, link.input].join("\n")) || []).map((row) => make("div", { class: "why" },
    row.by === "execution"
      ? `run: its values worked ${row.worked} times in ${count(row.states, "state", "states")}, failed ${row.failed}; values from elsewhere worked ${row.elsewhere_worked} times, failed ${row.elsewhere_failed}`
      : `recorded: ${count(row.worked, "task passes", "tasks pass")} it on; the user had said it ${row.known} times, an earlier result had shown it ${row.again} times`));
  const MEANS = { 3: "the target relies on it", 2: "one way among others", 1: "only for lack of anything better" };
  const section = (title, items) => (items.length ? [make("h3", {}, title), ...items] : []);
  const edgeRow = (edge, other) => make("button", { class: "tool", type: "button", click: () => select(edge) },
    make("span", { class: "num" }, `${edge.weight} · ${number(edge.score)}`), other.name, " ", edge.far ? make("small", {}, other.server.name) : null);
  const parameterRow = (parameter) => make("div", { class: "item" },
    make("div", { class: "top" }, make("code", {}, parameter.name), chip(parameter.kind, parameter.kind), parameter.required ? null : chip("optional")),
    make("div", { class: "why" }, parameter.evidence.join("; ")));
  const ordered = (list) => [...list].sort((a, b) => b.weight - a.weight || b.score - a.score);
  const showTool = (tool) => [
    make("h2", {}, tool.name), make("p", { class: "soft" }, tool.server.name), chip(tool.write ? "may write" : "reads"),
    make("p", {}, tool.description || "no description"),
    ...section("Parameters", tool.parameters.map(parameterRow)),
    ...section(`Takes from (${tool.in.length})`, ordered(tool.in).map((edge) => edgeRow(edge, edge.source))),
    ...section(`Gives to (${tool.out.length})`, ordered(tool.out).map((edge) => edgeRow(edge, edge.target))),
  ];
  const showEdge = (edge) => {
    const kinds = new Map(edge.target.parameters.map((parameter) => [parameter.name, parameter]));
    const toTool = (tool) => make("button", { class: "tool", type: "button", click: () => { select(tool); go(tool); } }, make("b", {}, tool.name), " ", make("small", {}, tool.server.name));
    return [
      make("h2", {}, edge.source.name, make("span", { class: "arrow" }, " → "), edge.target.name),
      make("p", {}, chip(`${edge.weight}: ${MEANS[edge.weight] || ""}`, edge.weight >= 3 ? "strong" : ""), chip(`score ${number(edge.score)}`), ...edge.evidence.map((word) => chip(word))),
      ...section("Values that can flow", edge.links.map((link) => {
        const parameter = kinds.get(link.input);
        return make("div", { class: "item" },
          make("div", { class: "top" }, make("code", {}, link.output, " → ", link.input), make("span", { class: "num" }, number(link.score))),
          make("div", { class: "bar" }, make("i", { style: `width:${Math.round(100 * Math.min(1, Math.max(0, link.score)))}%` })),
          parameter ? make("div", { class: "why" }, chip(parameter.kind, parameter.kind), parameter.required ? "" : "optional, ", parameter.evidence.join("; ")) : null,
          ...proved(edge, link));
      })),
      ...section("From", [toTool(edge.source)]), edge.source.description ? make("p", { class: "soft" }, edge.source.description) : null,
      ...section("To", [toTool(edge.target)]), edge.target.description ? make("p", { class: "soft" }, edge.target.description) : null,
    ];
  };
  const select = (thing) => {
    selected = thing;
    if (large && thing !== null && !thing.source) { focus(thing); refilter(); }
    right.hidden = thing === null;
    resize();
    if (thing === null) { detail.replaceChildren(); history.replaceState(null, "", "#"); return; }
    detail.replaceChildren(...(thing.source ? showEdge(thing) : showTool(thing)).filter(Boolean));
    right.scrollTop = 0;
    history.replaceState(null, "", "#" + encodeURIComponent(thing.source ? `${thing.source.full}>${thing.target.full}` : thing.full));
    draw();
  };
  const openHash = () => {
    let wanted = "";
    try { wanted = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const edge = edges.find((one) => `${one.source.full}>${one.target.full}` === wanted);
    const thing = edge || byName.get(wanted);
    if (!thing) return;
    if (large && edge) { focus(edge.target); refilter(); }
    select(thing);
    go(edge ? { x: (edge.source.x + edge.target.x) / 2, y: (edge.source.y + edge.target.y) / 2 } : thing);
  };

  // Pointer and keys

  const pointers = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); pointers.set(event.pointerId, [event.offsetX, event.offsetY]); moved = 0; });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId), x = event.offsetX, y = event.offsetY;
    if (!before) return hover(x, y);
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      zoom(Math.hypot(x - other[0], y - other[1]) / (Math.hypot(before[0] - other[0], before[1] - other[1]) || 1), (x + other[0]) / 2, (y + other[1]) / 2);
    } else {
      view.x -= (x - before[0]) / view.scale;
      view.y -= (y - before[1]) / view.scale;
      draw();
    }
    moved += Math.abs(x - before[0]) + Math.abs(y - before[1]);
    canvas.classList.toggle("drag", moved > 4);
    pointers.set(event.pointerId, [x, y]);
  });
  const lift = (event) => {
    const was = pointers.delete(event.pointerId);
    canvas.classList.remove("drag");
    if (was && event.type === "pointerup" && moved <= 4) select(toolAt(event.offsetX, event.offsetY) || edgeAt(event.offsetX, event.offsetY));
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => { byId("tip").hidden = true; });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.offsetX, event.offsetY);
  }, { passive: false });
  const hover = (x, y) => {
    const tool = toolAt(x, y), edge = tool || shown.length > 20000 ? null : edgeAt(x, y), tip = byId("tip");
    canvas.classList.toggle("over", Boolean(tool || edge));
    if (tool !== over) { over = tool; draw(); }
    tip.hidden = !(tool || edge);
    if (tip.hidden) return;
    tip.textContent = tool ? `${tool.full}${tool.description ? ": " + tool.description.slice(0, 140) : ""}` : `${edge.source.name} → ${edge.target.name}: ${edge.links.slice(0, 3).map((link) => link.input).join(", ")}`;
    tip.style.left = Math.min(x + 14, size.width - 200) + "px";
    tip.style.top = y + 16 + "px";
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") select(null);
    if (event.target.tagName === "INPUT") return;
    const step = 60 / view.scale, keys = {
      "+": () => zoom(1.3), "=": () => zoom(1.3), "-": () => zoom(1 / 1.3), 0: fit, "/": () => { event.preventDefault(); byId("search").focus(); },
      ArrowLeft: () => { view.x -= step; draw(); }, ArrowRight: () => { view.x += step; draw(); }, ArrowUp: () => { view.y -= step; draw(); }, ArrowDown: () => { view.y += step; draw(); },
    };
    if (keys[event.key] && !event.ctrlKey && !event.metaKey) keys[event.key]();
  });
  byId("in").addEventListener("click", () => zoom(1.4));
  byId("out").addEventListener("click", () => zoom(1 / 1.4));
  byId("fit").addEventListener("click", fit);
  byId("close").addEventListener("click", () => select(null));

  // Filters and search

  const boxes = (large ? [] : servers).map((server) => {
    const box = make("input", { type: "checkbox" });
    box.checked = true;
    box.addEventListener("change", () => { server.on = box.checked; refilter(); });
    const row = make("label", { class: "check", title: server.name }, box, make("i", { class: "swatch", style: `background:hsl(${server.hue} 55% 55%)` }), make("span", {}, server.name), make("b", {}, String(server.tools.length)));
    row.addEventListener("dblclick", (event) => { event.preventDefault(); setAll(false); server.on = box.checked = true; refilter(); fit(); });
    return { server, box, row };
  });
  const setAll = (on) => { for (const { server, box, row } of boxes) if (!row.hidden || !on) server.on = box.checked = on && !row.hidden; };
  byId("servers").append(...boxes.map(({ row }) => row));
  byId("server-count").textContent = large ? "too many to list: search for a tool" : "double click: only this one";
  if (large) for (const id of ["server-filter", "all", "none"]) byId(id).hidden = true;
  byId("server-filter").addEventListener("input", (event) => { for (const { server, row } of boxes) row.style.display = (row.hidden = !server.name.toLowerCase().includes(event.target.value.toLowerCase())) ? "none" : ""; });
  byId("all").addEventListener("click", () => { setAll(true); refilter(); fit(); });
  byId("none").addEventListener("click", () => { setAll(false); refilter(); });
  for (const id of ["strong", "weak", "guess", "between"]) byId(id).addEventListener("change", refilter);
  byId("score").addEventListener("input", (event) => { byId("score-value").textContent = number(Number(event.target.value)); refilter(); });

  const search = byId("search"), hits = byId("hits");
  for (const tool of tools) tool.text = [tool.full, tool.description, ...tool.parameters.map((parameter) => parameter.name)].join(" ").toLowerCase();
  const find = () => {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!wanted.length) return [];
    const rank = (tool) => wanted.reduce((sum, word) => sum + (tool.name.toLowerCase().includes(word) ? 2 : 0), 0);
    return tools.filter((tool) => wanted.every((word) => tool.text.includes(word))).map((tool) => [rank(tool), tool]).sort((a, b) => b[0] - a[0]).slice(0, 30).map(([, tool]) => tool);
  };
  const open = (tool) => { tool.server.on = true; if (!large) boxes[tool.server.number].box.checked = true; refilter(); select(tool); go(tool); };
  search.addEventListener("input", () => hits.replaceChildren(...find().map((tool) => make("button", { type: "button", role: "option", click: () => open(tool) }, tool.name, " ", make("span", { class: "soft" }, tool.server.name)))));
  search.addEventListener("keydown", (event) => { if (event.key === "Enter" && find().length) open(find()[0]); });

  window.addEventListener("resize", resize);
  window.addEventListener("hashchange", openHash);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readColours);
  if (large) focus(tools.reduce((best, tool) => (tool.in.length + tool.out.length > best.in.length + best.out.length ? tool : best)));
  readColours();
  resize();
  refilter();
  fit();
  openHash();
})();
