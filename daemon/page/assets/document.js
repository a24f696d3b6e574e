// What the page shows, and how it is kept up to date.
//
// `shown` is the only state. Whoever draws a part listens to it: "live" for the
// node's status, "points", "members", "graph", "plans", "events".

const shown = {
  kind: "node",     // or "run": a finished run of dflsim
  run: null,        // of a run: how it went
  live: null,       // of a node: the last message of /page/live
  received: 0,      // when, in seconds by the viewer's clock
  members: [],
  membershipOff: false,
  graph: null,
  plans: null,      // {version, version_in_force, versions}
  texts: new Map(), // version: {yaml, whole}
  events: [],       // oldest first
  connected: false,
};

const listeners = new Map();

function listen(names, draw) {
  for (const name of names.split(" ")) {
    if (!listeners.has(name)) listeners.set(name, []);
    listeners.get(name).push(draw);
  }
}

// A part that fails leaves the others alone.
function tell(name) {
  for (const draw of listeners.get(name) || []) {
    try {
      draw();
    } catch (error) {
      console.error(error);
    }
  }
}

function nowSeconds() { return Date.now() / 1000; }

// ---------------------------------------------------------------- points ----

// An era is one life of the daemon: its points count from its start. `begin` is
// that start by the viewer's clock; of a run 0.
const eras = [];

function era(incarnation, atSeconds) {
  const last = eras[eras.length - 1];
  if (last && last.incarnation === incarnation) return last;
  eras.push({incarnation, begin: nowSeconds() - atSeconds, points: {t: []}});
  if (eras.length > 20) eras.shift();
  return eras[eras.length - 1];
}

function appendPoint(to, point) {
  const length = to.t.length;
  if (length > 0 && point.t[0] <= to.t[length - 1]) return;
  for (const name of new Set([...Object.keys(to), ...Object.keys(point)])) {
    if (!to[name]) to[name] = new Array(length).fill(null);
    to[name].push(point[name] ? point[name][0] : null);
  }
}

// All points, with an empty one between two eras. "t" is unix seconds, or
// seconds of a run; counters since the start of a daemon go on over restarts.
function allPoints() {
  const kCounters = ["bytes_sent", "dense_bytes_sent", "bytes_received"];
  const names = new Set(eras.flatMap((one) => Object.keys(one.points)));
  const out = {};
  for (const name of names) out[name] = [];
  const base = {};
  eras.forEach((one, place) => {
    const length = one.points.t.length;
    if (length === 0) return;
    if (out.t.length > 0) {
      for (const name of names) {
        out[name].push(name === "t" ? one.begin + one.points.t[0] - 0.001 : null);
      }
    }
    for (const name of names) {
      const column = one.points[name] || new Array(length).fill(null);
      const add = name === "t" ? one.begin : base[name] || 0;
      for (const value of column) out[name].push(value === null ? null : value + add);
    }
    for (const name of kCounters) {
      const column = one.points[name];
      if (column && place < eras.length - 1) {
        base[name] = (base[name] || 0) + (column[column.length - 1] || 0);
      }
    }
  });
  return out;
}

// ------------------------------------------------------------------ node ----

async function load(path) {
  const answer = await fetch(path, {cache: "no-store"});
  if (!answer.ok) throw new Error(path + ": " + answer.status);
  return answer.json();
}

// Loads one part; a failure is left to the next try.
function renew(path, take, name) {
  return load(path).then((part) => {
    take(part);
    tell(name);
  }).catch(() => {});
}

function renewHistory(incarnation) {
  return renew("page/history.json", (history) => {
    const one = era(incarnation, history.at_s);
    one.points = history.points;
  }, "points");
}

function renewMembers() {
  return renew("page/members.json", (part) => {
    shown.members = part.members;
    shown.membershipOff = part.membership_off;
  }, "members");
}

function renewGraph() {
  return renew("page/graph.json", (graph) => { shown.graph = graph; }, "graph");
}

function renewPlans() {
  return renew("page/plans.json", (plans) => { shown.plans = plans; }, "plans");
}

// Events are numbered from the daemon's start.
let eventsFrom = 0;
function renewEvents() {
  const from = eventsFrom;
  return renew("page/events.json?from=" + from, (part) => {
    if (from !== eventsFrom) return;
    shown.events = shown.events.concat(part.events).slice(-500);
    eventsFrom = part.end;
  }, "events");
}

// The document of a version; null where the daemon has none.
async function planText(version) {
  if (!shown.texts.has(version)) {
    try {
      shown.texts.set(version, await load("page/plan.json?version=" + version));
    } catch (error) {
      return null;
    }
  }
  return shown.texts.get(version);
}

function takeLive(live) {
  const before = shown.live;
  shown.live = live;
  shown.received = nowSeconds();
  shown.connected = true;
  const restarted = !before || before.status.incarnation !== live.status.incarnation;
  if (restarted) {
    if (before) eventsFrom = 0;
    renewHistory(live.status.incarnation);
  } else {
    const one = era(live.status.incarnation, live.at_s);
    appendPoint(one.points, live.point);
    // The daemon thins its points out; so does who asks anew.
    if (one.points.t.length > 2500) renewHistory(live.status.incarnation);
  }
  if (restarted || live.events_end !== eventsFrom) renewEvents();
  if (restarted || live.events_end !== before.events_end) {
    renewMembers();
    renewGraph();
  }
  if (restarted || live.plan_version !== before.plan_version ||
      live.status.plan_version !== before.status.plan_version) {
    renewPlans();
    renewGraph();
  }
  tell("live");
  if (!restarted) tell("points");
}

function connect() {
  const source = new EventSource("page/live");
  source.addEventListener("status", (event) => takeLive(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    shown.connected = false;
    tell("live");
    // The browser tries again by itself, but gives up after an error in HTTP.
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  });
}

function followNode() {
  connect();
  // Members change without an event of ours, and "12 s ago" grows.
  setInterval(renewMembers, 10000);
  setInterval(() => {
    if (shown.connected && nowSeconds() - shown.received > 10) {
      shown.connected = false;
    }
    tell("live");
  }, 1000);
}

// ------------------------------------------------------------------- run ----

function showDocument(text) {
  const given = JSON.parse(text);
  shown.kind = given.kind;
  shown.run = given.run;
  eras.push({incarnation: "run", begin: 0, points: given.points});
  shown.members = given.members;
  shown.graph = given.graph;
  shown.events = given.events;
  for (const plan of given.plans) {
    shown.texts.set(plan.version, {version: plan.version, yaml: plan.yaml, whole: true});
  }
  const newest = given.plans.length > 0 ? given.plans[given.plans.length - 1].version : 0;
  shown.plans = {
    version: newest,
    version_in_force: newest,
    versions: given.plans.map((plan) => ({version: plan.version, t: plan.t, author: "", kept: true})),
  };
  for (const name of ["live", "points", "members", "graph", "plans", "events"]) tell(name);
}
