// What stands above: the state, what a person should do something about, and
// the figures.

const kPhaseLooks = {
  training: "good", joining: "info", idle: "", paused: "warn", finished: "info", stopped: "warn", degraded: "bad", failed: "bad",
  settled: "info", limit: "warn", diverged: "bad", stalled: "bad", interrupted: "warn",
};
const kPhaseMarks = {training: "▶", joining: "…", idle: "○", paused: "❚❚", finished: "✓", settled: "✓", stopped: "■", degraded: "!", failed: "✕", diverged: "✕", stalled: "✕"};

function phaseChip(phase) {
  return chip(kPhaseLooks[phase] || "", [element("span", {"aria-hidden": "true"}, kPhaseMarks[phase] || "○"), " " + phase]);
}

// ---------------------------------------------------------------- notices ----

// {look, title, text, more: [what to do, command]}
function noticesOf(status) {
  const out = [];
  const add = (look, title, text, more) => out.push({look, title, text, more: more || []});
  if (status.phase === "failed") {
    add("bad", "Training has failed for good.", status.phase_reason || status.last_error, ["What happened:", "dflctl event list --kind learner-failed"]);
  } else if (status.phase === "degraded") {
    add("bad", "Degraded: this node mixes and answers, and does not train.", status.phase_reason || status.last_error,
      ["It tries again by itself. What happened:", "dflctl event list --kind learner-failed"]);
  } else if (status.last_error) {
    add("warn", "Training:", status.last_error);
  }
  if (status.alone) add("bad", "This node learns alone.", status.alone, ["Who is linked, and why not:", "dflctl status --peers"]);
  if (status.checkpoint_error) {
    add("warn", "The last checkpoint is not written.", status.checkpoint_error,
      ["A restart would go on from step " + count(status.checkpoint_step) + ". What the disk holds:", "dflctl checkpoint list"]);
  }
  if (status.data_error) add("warn", "Changed data files are not taken up.", status.data_error, ["The node trains on the rows that it has. What they are:", "dflctl data show"]);
  if (status.cluster && status.certificate_days !== 0 && status.certificate_days < 14) {
    add(status.certificate_days < 3 ? "bad" : "warn", status.certificate_days < 0 ? "The certificate has expired." :
      "The certificate expires in " + plural(Math.floor(status.certificate_days), "day", "days") + ".", "",
    ["Renew it where the authority's folder is:", "dflctl cert renew " + status.node]);
  }
  for (const warning of status.warnings) add("warn", "", warning);
  for (const peer of status.peers) {
    if (peer.neighbour && peer.linked && !peer.mixing && peer.not_mixing && !status.alone) {
      add("warn", "No models are exchanged with " + peer.node + ".", peer.not_mixing);
    }
  }
  if (status.plan_version === 0 && status.pending_plan_version === 0) {
    add("info", "There is no plan yet.", "", ["This gives one to the whole network, and starts it:", "dflctl plan apply plan.yaml --start"]);
  } else if (status.phase === "idle" && status.plan_version > 0) {
    add("info", "The plan waits for a start.", status.phase_reason, ["", "dflctl train start --network"]);
  }
  if (status.phase === "paused") add("info", "Paused by hand.", status.phase_reason, ["It still answers its neighbours. To go on:", "dflctl train resume"]);
  if (status.pending_plan_version > 0) add("info", "Plan version " + status.pending_plan_version + " waits for the next boundary.", "");
  return out;
}

// Of many alike the first few.
function drawNotices(notices) {
  const most = 6;
  const left = notices.length - most;
  fill(byId("notices"), notices.slice(0, most).map((notice) => element("div", {class: "notice " + notice.look},
    notice.title ? element("b", {}, notice.title) : null, notice.text,
    notice.more.length > 0 ? element("span", {class: "more"}, notice.more[0] + " ", element("code", {}, notice.more[1])) : null)),
  left > 0 ? element("div", {class: "notice"}, "and " + left + " more") : null);
}

// ---------------------------------------------------------------- figures ----

function tile(what, value, sub, look, share) {
  return element("div", {class: "tile " + (look || "")}, element("div", {class: "what"}, what), element("div", {class: "value"}, value),
    share === undefined ? null : progressBar(what, share), element("div", {class: "sub"}, sub || " "));
}

function progressBar(what, share) {
  const filled = element("i", {});
  filled.style.width = (100 * Math.min(Math.max(share, 0), 1)).toFixed(1) + "%";
  return element("div", {class: "bar", role: "progressbar", "aria-label": what, "aria-valuemin": 0, "aria-valuemax": 100,
    "aria-valuenow": Math.round(100 * share)}, filled);
}

function progressTile(status) {
  if (status.stop_rounds > 0 && status.stop_steps === 0) {
    return tile("Rounds", [count(status.round), element("small", {}, " of " + count(status.stop_rounds))],
      "step " + count(status.step), "", status.round / status.stop_rounds);
  }
  if (status.stop_epochs > 0 && status.stop_steps === 0) {
    return tile("Passes over the rows", [figure(status.epochs), element("small", {}, " of " + figure(status.stop_epochs))],
      "step " + count(status.step), "", status.epochs / status.stop_epochs);
  }
  if (status.stop_steps > 0) {
    const left = (status.stop_steps - status.step) / status.steps_per_second;
    const sub = status.phase === "training" && status.steps_per_second > 0 && left > 0 ? "about " + span(left < 300 ? left : 60 * Math.round(left / 60)) + " left" : "round " + count(status.round);
    return tile("Step", [count(status.step), element("small", {}, " of " + count(status.stop_steps))], sub, "", status.step / status.stop_steps);
  }
  return tile("Step", count(status.step), "round " + count(status.round) + (status.epochs > 0 ? ", " + figure(status.epochs) + " passes" : ""));
}

function scoreTile(status) {
  const scored = status.evaluation;
  if (!scored) return tile("Accuracy", kNothing, status.test_rows > 0 ? "not evaluated yet" : "no test rows");
  const sub = "on " + plural(scored.rows, "row", "rows") + ", step " + count(scored.step);
  if (isNumber(scored.accuracy)) return tile("Accuracy", percent(scored.accuracy), sub);
  return isNumber(scored.r2) ? tile("R²", figure(scored.r2), "mean absolute error " + figure(scored.mae)) : tile("Mean absolute error", figure(scored.mae), sub);
}

function savedText(sent, dense) {
  if (!(sent > 0 && dense > 0)) return "nothing to compare yet";
  const factor = dense / sent;
  return factor >= 1.005 ? factor.toPrecision(3) + "× less than dense (" + bytes(dense) + ")" :
    "dense: " + bytes(dense);
}

function nodeTiles(status) {
  const neighbours = status.peers.filter((peer) => peer.neighbour);
  const mixing = neighbours.filter((peer) => peer.mixing);
  const absent = neighbours.filter((peer) => !peer.mixing).map((peer) => peer.node);
  const distance = status.gauges.consensus_distance;
  return [
    progressTile(status),
    tile("Training loss", figure(status.loss), status.evaluation ? "test rows: " + figure(status.evaluation.loss) : status.train_rows > 0 ? "on " + plural(status.train_rows, "row", "rows") : "no data yet"),
    scoreTile(status),
    tile("Speed", [figure(status.steps_per_second), element("small", {}, " steps/s")], "longest step " + span(status.longest_step_gap_seconds)),
    tile("Neighbours mixing", [String(mixing.length), element("small", {}, " of " + neighbours.length)],
      absent.length === 0 ? (status.missed > 0 ? count(status.missed) + " answers missed" : "none missed") : "not: " + absent.slice(0, 3).join(", ") + (absent.length > 3 ? " …" : ""),
      neighbours.length > 0 && mixing.length === 0 && status.phase === "training" ? "bad" : ""),
    tile("Consensus distance", figure(distance), "to the neighbours' models"),
    tile("Sent", bytes(status.bytes_sent), savedText(status.bytes_sent, status.dense_bytes_sent)),
    tile("Received", bytes(status.bytes_received), plural(status.models_received, "model", "models")),
  ];
}

function runTiles(run) {
  const points = allPoints();
  const last = (name) => {
    const column = (points[name] || []).filter(isNumber);
    return column.length > 0 ? column[column.length - 1] : null;
  };
  const sent = last("bytes_sent");
  const dense = isNumber(run.models_received) ? run.models_received * 4 * run.parameters : null;
  const out = [
    tile("Steps of a node", count(last("step")), "in " + span(last("t")) + " of virtual time"),
    tile("Loss of the mean model", figure(last("loss_mean_model")), "mean of the nodes: " + figure(last("mean_loss"))),
  ];
  if (isNumber(last("accuracy_mean_model"))) {
    out.push(tile("Accuracy of the mean model", percent(last("accuracy_mean_model")), "mean of the nodes: " + percent(last("accuracy"))));
  }
  out.push(tile("Consensus error", figure(last("consensus_error")), "mean |w − mean w|²"),
    tile("Sent by all", bytes(sent), isNumber(dense) ? savedText(sent, dense) : ""),
    tile("Nodes", [count(last("nodes")), element("small", {}, " of " + count(run.nodes))],
      run.crashes > 0 ? plural(run.crashes, "crash", "crashes") : "no crashes"));
  return out;
}

function drawFacts(facts) {
  fill(byId("facts"), facts.filter(([, value]) => value !== "" && value !== kNothing && value !== null).map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function nodeFacts(status) {
  return [
    ["Algorithm", status.algorithm], ["Graph", [status.topology, status.weights].filter((text) => text).join(", ")],
    ["Spectral gap", status.spectral_gap > 0 ? figure(status.spectral_gap) : ""],
    ["Format", status.format], ["Model", status.model ? status.model + (status.parameter_count > 0 ? ", " + count(status.parameter_count) + " parameters" : "") : ""],
    ["Rows", status.train_rows > 0 ? count(status.train_rows) + " to train, " + count(status.test_rows) + " to test" : ""],
    ["Plan", status.plan_version > 0 ? "version " + status.plan_version : ""],
    ["Checkpoint", status.checkpoint_step > 0 ? "step " + count(status.checkpoint_step) : ""],
    ["Memory of the plan", status.memory_bytes > 0 ? bytes(status.memory_bytes) + (status.memory_limit_bytes > 0 ? " of " + bytes(status.memory_limit_bytes) : "") : ""],
    ["Refused", Object.entries(status.rejected).map(([reason, times]) => reason + " " + count(times)).join(", ")],
    ["Network", status.cluster || (status.insecure ? "insecure" : "")],
    ["Up", span(status.uptime_seconds)],
  ];
}

function drawRun() {
  const run = shown.run;
  byId("title").textContent = run.title;
  document.title = run.title + " · dflsim";
  fill(byId("phase"), phaseChip(run.end));
  byId("live").textContent = "a finished run";
  drawNotices(run.failed ? [{look: "bad", title: "The run failed.", text: run.why, more: ["Again by:", run.replay]}] : []);
  fill(byId("tiles"), runTiles(run));
  drawFacts([["Ended", run.why], ["Algorithm", run.algorithm], ["Graph", run.topology], ["Spectral gap", run.spectral_gap > 0 ? figure(run.spectral_gap) : ""],
    ["Format", run.format], ["Parameters", count(run.parameters)], ["Links lost", count(run.links_lost)], ["Answers missed", count(run.neighbours_missed)],
    ["Seed", String(run.seed)], ["Digest", run.digest], ["Again by", element("code", {}, run.replay)]]);
}

function drawLive() {
  const live = byId("live");
  live.className = shown.connected ? "on" : "off";
  const text = shown.connected ? "live" : shown.live ? "no answer since " + clock(shown.received) : "connecting";
  if (live.textContent !== text) live.textContent = text;
  document.body.classList.toggle("stale", !shown.connected && shown.live !== null);
}

function drawNode() {
  drawLive();
  if (!shown.live) return;
  const status = shown.live.status;
  byId("title").textContent = status.node;
  const share = status.stop_steps > 0 ? " " + Math.floor(100 * status.step / status.stop_steps) + " %" : "";
  document.title = status.node + " · " + (shown.connected ? status.phase + share : "no answer");
  fill(byId("phase"), phaseChip(status.phase));
  drawNotices(noticesOf(status));
  fill(byId("tiles"), nodeTiles(status));
  drawFacts(nodeFacts(status));
  fill(byId("footer"), "dfld " + status.version + ". This page only reads; ", element("code", {}, "dflctl"), " changes things. Times are by this viewer's clock.");
}

listen("live", () => shown.kind === "run" ? drawRun() : drawNode());
