// Neighbours, members and events.

// A table whose columns sort. A column: {title, number, wide, sort(row),
// cell(row), unless(row)}; the first is the row's name. One for which `unless`
// holds in all rows is left out.
class SortedTable {
  constructor(parent, label, columns) {
    this.columns = columns;
    this.sorted = 0;
    this.down = false;
    this.rows = [];
    this.body = element("tbody", {});
    this.heads = columns.map((column, place) => element("th", {scope: "col", class: this.classOf(column)},
      element("button", {type: "button", onclick: () => this.sortBy(place)}, column.title)));
    this.table = element("table", {"aria-label": label}, element("thead", {}, element("tr", {}, this.heads)), this.body);
    parent.append(this.table);
    this.markHeads();
  }
  classOf(column) {
    return [column.number ? "number" : "", column.wide ? "wide" : ""].join(" ").trim() || null;
  }
  sortBy(place) {
    this.down = place === this.sorted ? !this.down : this.columns[place].number === true;
    this.sorted = place;
    this.markHeads();
    this.draw();
  }
  markHeads() {
    this.heads.forEach((head, place) => {
      if (place === this.sorted) {
        head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      } else {
        head.removeAttribute("aria-sort");
      }
      const title = this.columns[place].title;
      head.firstChild.textContent = title + (place === this.sorted ? (this.down ? " ↓" : " ↑") : "");
    });
  }
  show(rows) {
    this.rows = rows;
    this.draw();
  }
  draw() {
    const key = this.columns[this.sorted].sort;
    const compare = (a, b) => {
      const x = key(a);
      const y = key(b);
      if (x === y) return 0;
      if (x === null || x === undefined) return 1;
      if (y === null || y === undefined) return -1;
      const order = typeof x === "string" ? x.localeCompare(y, "en", {numeric: true}) : x - y;
      return this.down ? -order : order;
    };
    const sorted = [...this.rows].sort(compare);
    // A column in which all say the usual is left out.
    const shownColumns = this.columns.map((column) => !column.unless || this.rows.some((row) => !column.unless(row)));
    this.heads.forEach((head, place) => { head.hidden = !shownColumns[place]; });
    fill(this.body, sorted.map((row) => element("tr", {class: row.self ? "self" : null},
      this.columns.map((column, place) => place === 0 ?
        element("th", {scope: "row"}, column.cell(row)) :
        element("td", {class: this.classOf(column), hidden: !shownColumns[place]}, column.cell(row))))));
  }
}

// ------------------------------------------------------------- neighbours ----

let neighbourTable = null;

// What a neighbour is doing, in one word.
function peerChip(peer) {
  if (!peer.linked) return chip("bad", "not linked");
  if (!peer.neighbour) return chip("", "linked");
  if (!peer.mixing) return chip("warn", "not mixing");
  return chip("good", "mixing");
}

function behindText(peer) {
  const behind = shown.live.status.step - peer.step;
  if (!peer.linked || behind === 0) return "";
  return behind > 0 ? count(behind) + " behind" : count(-behind) + " ahead";
}

function withUnder(text, under) {
  return under ? [text, element("span", {class: "under"}, under)] : text;
}

function ageOf(peer, name) {
  const age = shown.live.ages[peer.node];
  return age && age[name] !== null ? age[name] + nowSeconds() - shown.received : null;
}

function whyOf(peer) {
  const differs = peer.disagrees.length > 0 && !peer.not_mixing ? "differs in " + peer.disagrees.join(", ") : "";
  return [peer.not_mixing, differs, peer.linked ? "" : peer.last_error]
    .filter((text, place, all) => text && all.indexOf(text) === place).join("; ");
}

const kPeerColumns = [
  {title: "Name", sort: (peer) => peer.node, cell: (peer) => peer.node},
  {title: "State", sort: (peer) => (peer.linked ? 1 : 0) + (peer.mixing ? 2 : 0), cell: (peer) => withUnder(peerChip(peer), whyOf(peer))},
  {title: "Phase", wide: true, sort: (peer) => peer.phase, cell: (peer) => peer.phase},
  {title: "Step", number: true, sort: (peer) => peer.step, cell: (peer) => withUnder(count(peer.step), behindText(peer))},
  {title: "Last model", sort: (peer) => ageOf(peer, "model_s"), cell: (peer) => peer.models_received > 0 ? ago(ageOf(peer, "model_s")) : kNothing},
  {title: "Weight", number: true, wide: true, sort: (peer) => peer.weight, cell: (peer) => peer.neighbour ? figure(peer.weight) : kNothing},
  {title: "Sent", number: true, sort: (peer) => peer.bytes_sent, cell: (peer) => withUnder(bytes(peer.bytes_sent), plural(peer.models_sent, "model", "models"))},
  {title: "Received", number: true, sort: (peer) => peer.bytes_received, cell: (peer) => withUnder(bytes(peer.bytes_received), plural(peer.models_received, "model", "models"))},
  {title: "Missed", number: true, wide: true, sort: (peer) => peer.missed, cell: (peer) => count(peer.missed)},
  {title: "Refused", number: true, wide: true, sort: (peer) => peer.rejected, cell: (peer) => count(peer.rejected), unless: (peer) => peer.rejected === 0},
];

function drawNeighbours() {
  if (shown.kind !== "node" || !shown.live) return;
  const peers = shown.live.status.peers;
  const neighbours = peers.filter((peer) => peer.neighbour);
  const mixing = neighbours.filter((peer) => peer.mixing).length;
  byId("neighbours-note").textContent = peers.length === 0 ? "" :
    mixing + " of " + plural(neighbours.length, "neighbour", "neighbours") + " mixing" +
    (peers.length > neighbours.length ? " · " + (peers.length - neighbours.length) + " more linked or known" : "");
  const parent = byId("neighbours-table");
  if (peers.length === 0) {
    neighbourTable = null;
    fill(parent, element("p", {class: "card empty-line"}, "No peer is known yet. Others find this node by ",
      element("code", {}, "peers"), ", DNS or mDNS; ", element("code", {}, "dflctl peer add HOST:PORT"), " dials one by hand."));
    return;
  }
  if (!neighbourTable) {
    const scroll = element("div", {class: "scroll card", tabindex: "0", role: "region", "aria-label": "Neighbours"});
    parent.replaceChildren(scroll);
    neighbourTable = new SortedTable(scroll, "Neighbours", kPeerColumns);
  }
  neighbourTable.show(peers);
}

// ---------------------------------------------------------------- members ----

const memberView = {table: null, filter: "", all: false, note: null, more: null};
const kMostMemberRows = 100;

function memberChip(member) {
  if (member.suspect) return chip("warn", "silent");
  const kinds = {member: "good", alone: "warn", joining: "info", degraded: "bad", draining: "warn", left: "", dead: "bad", gone: ""};
  return chip(kinds[member.state] || "", member.state);
}

function labelsOf(member) {
  return Object.entries(member.labels || {}).map(([key, value]) => key + "=" + value).join(", ");
}

const kMemberColumns = [
  {title: "Name", sort: (member) => member.node, cell: (member) => member.node},
  {title: "State", sort: (member) => member.state, cell: (member) => withUnder(memberChip(member), member.reason)},
  {title: "Since", number: true, wide: true, sort: (member) => member.in_state_s, cell: (member) => span(member.in_state_s)},
  {title: "Does", wide: true, sort: (member) => member.participation, cell: (member) => member.participation, unless: (member) => member.participation === "train"},
  {title: "Rows", number: true, sort: (member) => member.rows, cell: (member) => member.rows > 0 ? count(member.rows) : kNothing},
  {title: "Plan", number: true, sort: (member) => member.plan_version, cell: (member) => member.plan_version > 0 ? "v" + member.plan_version : kNothing},
  {title: "Labels", wide: true, sort: labelsOf, cell: labelsOf, unless: (member) => labelsOf(member) === ""},
];
const kRunMemberColumns = [
  kMemberColumns[0],
  {title: "At the end", sort: (member) => member.state, cell: (member) => member.hostile ? chip("bad", "hostile") : memberChip(member)},
  {title: "Step", number: true, sort: (member) => member.step, cell: (member) => count(member.step)},
  {title: "Loss", number: true, sort: (member) => member.loss, cell: (member) => figure(member.loss)},
  {title: "Accuracy", number: true, sort: (member) => member.accuracy, cell: (member) => percent(member.accuracy), unless: (member) => !isNumber(member.accuracy)},
  {title: "Plan", number: true, sort: (member) => member.plan_version, cell: (member) => member.plan_version > 0 ? "v" + member.plan_version : kNothing},
];

function makeMembers() {
  memberView.note = element("span", {class: "note"});
  const filter = element("input", {type: "search", placeholder: "name, state or label", oninput: (event) => {
    memberView.filter = event.target.value.trim().toLowerCase();
    drawMembers();
  }});
  memberView.more = element("button", {type: "button", onclick: () => {
    memberView.all = !memberView.all;
    drawMembers();
  }});
  const scroll = element("div", {class: "members-scroll", tabindex: "0", role: "region", "aria-label": "Members"});
  byId("members").append(
    element("div", {class: "above"}, element("h3", {}, "Members "), memberView.note, element("label", {}, "Filter ", filter)), scroll,
    element("div", {class: "above"}, memberView.more));
  memberView.table = new SortedTable(scroll, "Members", shown.kind === "run" ? kRunMemberColumns : kMemberColumns);
}

function matches(member) {
  if (memberView.filter === "") return true;
  return [member.node, member.state, member.participation || "", labelsOf(member)].some((text) => text.toLowerCase().includes(memberView.filter));
}

function drawMembers() {
  if (!memberView.table) makeMembers();
  const found = shown.members.filter(matches);
  const there = shown.members.filter((member) => !["left", "dead", "gone"].includes(member.state)).length;
  memberView.note.textContent = shown.membershipOff ? "Membership is off: this node knows of itself alone." :
    there + " there" + (there < shown.members.length ? ", " + (shown.members.length - there) + " gone" : "") +
    (memberView.filter ? "; " + found.length + " found" : "");
  const few = found.length <= kMostMemberRows;
  memberView.more.parentNode.hidden = few;
  memberView.more.textContent = memberView.all ? "Show fewer" : "Show all " + count(found.length);
  memberView.table.show(few || memberView.all ? found : found.slice(0, kMostMemberRows));
}

// ----------------------------------------------------------------- events ----

const kEventLooks = {
  "learner-failed": "bad", "learns-alone": "bad", "message-rejected": "warn", "neighbours-missed": "warn", "link-down": "warn",
  "peer-unreachable": "warn", disagrees: "bad", security: "warn", "phase-changed": "info", "plan-adopted": "info", plan: "info",
  network: "warn", end: "info", "link-up": "good",
};
const eventView = {kind: "", made: false, kinds: ""};

function drawEventTools() {
  const kinds = [...new Set(shown.events.map((event) => event.kind))].sort();
  if (kinds.join() === eventView.kinds) return;
  eventView.kinds = kinds.join();
  const select = element("select", {onchange: (event) => {
    eventView.kind = event.target.value;
    drawEvents();
  }}, element("option", {value: ""}, "all"), element("option", {value: "-evaluated"}, "all but evaluations"),
    kinds.map((kind) => element("option", {value: kind}, kind.replaceAll("-", " "))));
  select.value = eventView.kind;
  if (select.selectedIndex < 0) select.value = eventView.kind = "";
  byId("event-tools").replaceChildren(element("label", {}, "Show ", select));
}

function drawEvents() {
  drawEventTools();
  const wanted = shown.events.filter((event) => eventView.kind === "" ||
    (eventView.kind[0] === "-" ? event.kind !== eventView.kind.slice(1) : event.kind === eventView.kind));
  if (wanted.length === 0) {
    fill(byId("event-list"), element("p", {class: "empty-line"}, "Nothing has happened yet."));
    return;
  }
  const rows = wanted.slice(-200).reverse().map((event) => element("li", {},
    element("time", {}, isNumber(event.t) ? span(event.t) : clock(event.unix_ms / 1000)),
    element("span", {}, chip(kEventLooks[event.kind] || "", event.kind.replaceAll("-", " "))),
    element("span", {class: "text"}, event.text)));
  fill(byId("event-list"), element("ol", {class: "events", reversed: true, tabindex: "0", "aria-label": "Events, the newest first"}, rows));
}

listen("live", drawNeighbours);
listen("members", drawMembers);
listen("events", drawEvents);
