// The graph of the network. Positions follow from the graph alone, so they stay
// where they are while states change.

const graphView = {key: "", places: [], chosen: null, nodes: [], lines: []};

// Fruchterman and Reingold: edges pull, nodes push. From a circle, so the same
// graph is always drawn the same.
function layout(size, edges) {
  const at = [];
  for (let i = 0; i < size; ++i) {
    const angle = 2 * Math.PI * i / size - Math.PI / 2;
    at.push([Math.cos(angle), Math.sin(angle)]);
  }
  if (size < 4) return at;
  const k = 1.6 / Math.sqrt(size);
  const rounds = size > 120 ? 120 : 300;
  for (let round = 0; round < rounds; ++round) {
    const heat = 0.12 * (1 - round / rounds);
    const move = at.map(() => [0, 0]);
    for (let i = 0; i < size; ++i) {
      for (let j = i + 1; j < size; ++j) {
        const dx = at[i][0] - at[j][0];
        const dy = at[i][1] - at[j][1];
        const square = Math.max(dx * dx + dy * dy, 1e-6);
        const push = k * k / square;
        move[i][0] += dx * push;
        move[i][1] += dy * push;
        move[j][0] -= dx * push;
        move[j][1] -= dy * push;
      }
    }
    for (const [a, b] of edges) {
      const dx = at[a][0] - at[b][0];
      const dy = at[a][1] - at[b][1];
      const pull = Math.sqrt(dx * dx + dy * dy) / k;
      move[a][0] -= dx * pull;
      move[a][1] -= dy * pull;
      move[b][0] += dx * pull;
      move[b][1] += dy * pull;
    }
    for (let i = 0; i < size; ++i) {
      // To the middle, so that parts without an edge between them stay near.
      const fx = move[i][0] - at[i][0] * k * 0.5;
      const fy = move[i][1] - at[i][1] * k * 0.5;
      const force = Math.sqrt(fx * fx + fy * fy) || 1;
      at[i][0] += fx / force * Math.min(force, heat);
      at[i][1] += fy / force * Math.min(force, heat);
    }
  }
  return at;
}

// Scaled so that the nodes have room for their names, wide rather than high.
function fitted(at, size) {
  const crowd = Math.max(1, Math.sqrt(size / 24));
  const room = byId("graph");
  const width = Math.max(room.clientWidth - 24, 280) * crowd;
  const height = (matchMedia("(max-width: 600px)").matches ? 320 : 400) * crowd;
  const range = (axis) => {
    const values = at.map((place) => place[axis]);
    return [Math.min(...values), Math.max(...values)];
  };
  const [left, right] = range(0);
  const [top, bottom] = range(1);
  const wide = right - left || 1;
  const high = bottom - top || 1;
  // A little stretched is well, a lot is not.
  const scaleX = (width - 90) / wide;
  const scaleY = (height - 70) / high;
  const sx = Math.min(scaleX, scaleY * 1.5);
  const sy = Math.min(scaleY, scaleX * 1.5);
  return {width, height, places: at.map(([x, y]) => [
    width / 2 + (x - (left + right) / 2) * sx,
    height / 2 - 5 + (y - (top + bottom) / 2) * sy])};
}

function memberNamed(name) { return shown.members.find((member) => member.node === name); }

function peerNamed(name) {
  return shown.live ? shown.live.status.peers.find((peer) => peer.node === name) : undefined;
}

function ownName() { return shown.live ? shown.live.status.node : ""; }

// How a member is drawn, and what is said of it.
function lookOf(name) {
  const member = memberNamed(name);
  if (!member) return {look: "gone", word: shown.membershipOff ? "member of the plan" : "not there", mark: "?"};
  if (member.state === "gone" || member.state === "dead" || member.state === "left") {
    return {look: "gone", word: member.state === "gone" ? "down at the end" : member.state, mark: ""};
  }
  if (member.hostile) return {look: "bad", word: "hostile", mark: "!"};
  if (member.state === "degraded") return {look: "bad", word: "degraded", mark: "!"};
  if (member.suspect) return {look: "warn", word: "does not answer", mark: "?"};
  if (member.state === "draining" || member.state === "joining") {
    return {look: "warn", word: member.state, mark: "…"};
  }
  return {look: "", word: member.state, mark: ""};
}

function makeNode(name, place, labels) {
  const own = name === ownName();
  const group = svgElement("g", {class: "node", "aria-hidden": "true", transform: "translate(" + place.map((x) => x.toFixed(1)).join(" ") + ")"},
    own ? svgElement("circle", {class: "ring", r: 15}) : null,
    svgElement("circle", {r: 10}),
    svgElement("text", {class: "mark", "font-size": 13, "aria-hidden": "true"}, ""),
    labels || own ? svgElement("text", {y: own ? 31 : 26, "font-size": 13}, name) : null);
  group.addEventListener("pointerenter", () => choose(name));
  group.addEventListener("click", () => choose(name));
  return group;
}

function choose(name) {
  graphView.chosen = name;
  markGraph();
}

function stepGraph(event) {
  const names = shown.graph.members;
  const by = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
  if (by === undefined && event.key !== "Escape") return;
  event.preventDefault();
  if (event.key === "Escape") return choose(null);
  const at = names.indexOf(graphView.chosen);
  choose(names[(at + by + names.length) % names.length]);
}

function makeGraph() {
  const graph = shown.graph;
  const size = graph.members.length;
  const {width, height, places} = fitted(layout(size, graph.edges), size);
  graphView.lines = graph.edges.map(([a, b]) => {
    let [x2, y2] = places[b];
    if (graph.directed) {
      // The arrow's head touches the circle.
      const [x1, y1] = places[a];
      const length = Math.hypot(x2 - x1, y2 - y1) || 1;
      x2 -= (x2 - x1) / length * 13;
      y2 -= (y2 - y1) / length * 13;
    }
    return svgElement("line", {x1: places[a][0].toFixed(1), y1: places[a][1].toFixed(1), x2: x2.toFixed(1), y2: y2.toFixed(1),
      class: "edge", "marker-end": graph.directed ? "url(#arrow)" : null});
  });
  graphView.nodes = graph.members.map((name, i) => makeNode(name, places[i], size <= 40));
  const svg = svgElement("svg", {viewBox: "0 0 " + width.toFixed(0) + " " + height.toFixed(0), tabindex: "0", role: "img",
    "aria-label": graphLabel(graph), onkeydown: stepGraph},
    svgElement("defs", {}, svgElement("marker", {id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
      orient: "auto-start-reverse", markerUnits: "userSpaceOnUse"}, svgElement("path", {class: "arrow", d: "M0 0 8 4 0 8z"}))),
    ...graphView.lines, ...graphView.nodes);
  byId("graph").replaceChildren(svg, element("p", {class: "detail", "aria-live": "polite"}), graphKey());
}

function graphLabel(graph) {
  return "Graph of the network: " + plural(graph.members.length, "member", "members") + ", " +
    plural(graph.edges.length, "edge", "edges") + ". Arrow keys go from member to member.";
}

function keyEntry(look, text) {
  return element("span", {}, svgElement("svg", {viewBox: "-16 -16 32 32", "aria-hidden": "true"},
    svgElement("g", {class: "node " + look}, look === "own" ? svgElement("circle", {class: "ring", r: 14}) : null, svgElement("circle", {r: look === "own" ? 9 : 12}))), text);
}

function graphKey() {
  const run = shown.kind === "run";
  return element("div", {class: "key"},
    run ? null : keyEntry("own", "this node"), keyEntry("", "member"),
    run ? null : keyEntry("warn", "joining, leaving or silent"),
    keyEntry("bad", run ? "hostile" : "degraded"), keyEntry("gone", "not there"));
}

function neighboursIn(graph, name) {
  const at = graph.members.indexOf(name);
  const names = new Set();
  for (const [a, b] of graph.edges) {
    if (a === at) names.add(graph.members[b]);
    if (b === at) names.add(graph.members[a]);
  }
  return [...names].sort();
}

function detailOf(name) {
  const graph = shown.graph;
  if (name === null) {
    const degrees = graph.members.map((member) => neighboursIn(graph, member).length);
    const least = Math.min(...degrees);
    const most = Math.max(...degrees);
    return (least === most ? "Each member has " + plural(most, "neighbour", "neighbours") : "Members have " + least + " to " + most + " neighbours") +
      (graph.varies ? "; edges of round " + count(graph.round) + ", others are drawn later." : ".");
  }
  const neighbours = neighboursIn(graph, name);
  const member = memberNamed(name);
  const facts = [name + ": " + lookOf(name).word];
  if (member && isNumber(member.step)) facts.push("step " + count(member.step));
  if (member && isNumber(member.loss)) facts.push("loss " + figure(member.loss));
  if (member && isNumber(member.accuracy)) facts.push("accuracy " + percent(member.accuracy));
  const peer = peerNamed(name);
  if (peer) facts.push("step " + count(peer.step) + ", " + peer.phase);
  return facts.join(", ") + ". " + (neighbours.length === 0 ? "No neighbours." :
    plural(neighbours.length, "neighbour", "neighbours") + ": " + neighbours.join(", ") + ".");
}

function markGraph() {
  const graph = shown.graph;
  if (!graph || graph.members.length === 0) return;
  const own = graph.members.indexOf(ownName());
  const chosen = graph.members.indexOf(graphView.chosen);
  graph.edges.forEach(([a, b], i) => {
    const other = a === own ? b : b === own ? a : -1;
    const peer = other >= 0 ? peerNamed(graph.members[other]) : undefined;
    const lit = chosen >= 0 && (a === chosen || b === chosen);
    graphView.lines[i].setAttribute("class", "edge" + (other >= 0 && own >= 0 ? " own" : "") +
      (other >= 0 && own >= 0 && peer && !peer.mixing ? " off" : "") + (lit ? " lit" : chosen >= 0 ? " dim" : ""));
  });
  graph.members.forEach((name, i) => {
    const {look, mark} = lookOf(name);
    graphView.nodes[i].setAttribute("class", "node " + look + (i === chosen ? " lit" : ""));
    graphView.nodes[i].querySelector(".mark").textContent = mark;
  });
  const detail = byId("graph").querySelector(".detail");
  const text = detailOf(graphView.chosen);
  if (detail.textContent !== text) detail.textContent = text;
}

function drawGraph() {
  const graph = shown.graph;
  if (!graph) return;
  const key = JSON.stringify([graph.members, graph.edges, graph.directed, ownName()]);
  const kinds = graph.kind === "" ? [] : [graph.kind + (graph.directed ? ", directed" : "")];
  if (graph.members.length > 0) {
    kinds.push(plural(graph.members.length, "member", "members"), plural(graph.edges.length, "edge", "edges"));
  }
  byId("network-note").textContent = kinds.concat(graph.note ? [graph.note] : []).join(" · ");
  if (graph.members.length === 0) {
    graphView.key = "";
    fill(byId("graph"), element("p", {class: "empty-line"}, "There is no graph to draw. " + graph.note));
    return;
  }
  if (key !== graphView.key) {
    graphView.key = key;
    if (!graph.members.includes(graphView.chosen)) graphView.chosen = null;
    makeGraph();
  }
  markGraph();
}

listen("graph members live", drawGraph);
