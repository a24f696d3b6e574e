// The plan: its versions, and what changed from one to the next.

const planView = {version: null, mode: "diff", drawing: 0};

function lines(text) { return text.replace(/\n$/, "").split("\n"); }

// The longest common subsequence of lines, as [sign, line] pairs: " ", "-", "+".
function difference(before, after) {
  let begin = 0;
  while (begin < before.length && begin < after.length && before[begin] === after[begin]) ++begin;
  let end = 0;
  while (end < before.length - begin && end < after.length - begin &&
    before[before.length - 1 - end] === after[after.length - 1 - end]) ++end;
  const a = before.slice(begin, before.length - end);
  const b = after.slice(begin, after.length - end);
  const out = before.slice(0, begin).map((line) => [" ", line]);
  if (a.length * b.length > 4e6) {  // too long to compare line by line
    out.push(...a.map((line) => ["-", line]), ...b.map((line) => ["+", line]));
  } else {
    const common = Array.from({length: a.length + 1}, () => new Uint16Array(b.length + 1));
    for (let i = a.length - 1; i >= 0; --i) {
      for (let j = b.length - 1; j >= 0; --j) {
        common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
      }
    }
    let i = 0;
    let j = 0;
    while (i < a.length || j < b.length) {
      if (i < a.length && j < b.length && a[i] === b[j]) {
        out.push([" ", a[i]]);
        ++i;
        ++j;
      } else if (i < a.length && (j === b.length || common[i + 1][j] >= common[i][j + 1])) {
        out.push(["-", a[i++]]);
      } else {
        out.push(["+", b[j++]]);
      }
    }
  }
  return out.concat(before.slice(before.length - end).map((line) => [" ", line]));
}

// Changed lines with three around them, and a mark where lines are left out.
function hunks(changes) {
  const near = changes.map((_, place) => changes.slice(Math.max(0, place - 3), place + 4).some(([sign]) => sign !== " "));
  const out = [];
  changes.forEach(([sign, line], place) => {
    if (near[place]) {
      out.push([sign, line]);
    } else if (place === 0 || near[place - 1]) {
      out.push(["@", "⋯"]);
    }
  });
  return out;
}

function yamlLine(line) {
  const key = /^(\s*(?:- )?)([\w.-]+)(:.*)$/.exec(line);
  return key ? element("span", {}, key[1], element("span", {class: "key"}, key[2]), key[3]) : element("span", {}, line || " ");
}

function diffLine([sign, line]) {
  if (sign === "@") return element("span", {class: "hunk"}, line);
  if (sign === " ") return element("span", {}, "  " + line);
  return element(sign === "+" ? "ins" : "del", {}, sign + " " + line);
}

function earlier(version) {
  const kept = shown.plans.versions.filter((one) => one.kept && one.version < version);
  return kept.length > 0 ? kept[kept.length - 1].version : null;
}

function versionButton(one) {
  const notes = [];
  if (one.version === shown.plans.version_in_force) notes.push("in force");
  if (one.version > shown.plans.version_in_force) notes.push("waits for the next boundary");
  if (!one.kept) notes.push("document not kept");
  if (one.author) notes.push("by " + one.author);
  if (one.written_unix_ms > 0) notes.push(clock(one.written_unix_ms / 1000));
  if (isNumber(one.t)) notes.push("given out at " + span(one.t));
  return element("li", {}, element("button", {type: "button", "aria-current": String(one.version === planView.version), disabled: !one.kept,
    onclick: () => {
      planView.version = one.version;
      drawPlan();
    }}, "Version " + one.version, element("small", {}, notes.join(" · "))));
}

function drawPlanTools(before) {
  const modes = [["Whole", "whole"], ["Changes" + (before === null ? "" : " from version " + before), "diff"]];
  fill(byId("plan-tools"), element("div", {class: "choice", role: "group", "aria-label": "What is shown of the plan"},
    modes.map(([text, mode]) => element("button", {type: "button", "data-mode": mode, disabled: mode === "diff" && before === null,
      "aria-pressed": String((before === null ? "whole" : planView.mode) === mode)}, text))));
  for (const button of byId("plan-tools").querySelectorAll("button")) {
    button.onclick = () => {
      planView.mode = button.dataset.mode;
      drawPlan();
    };
  }
}

async function drawPlan() {
  const plans = shown.plans;
  if (!plans) return;
  const body = byId("plan-body");
  if (plans.versions.length === 0) {
    body.replaceChildren(element("p", {class: "card empty-line"}, "There is no plan yet. ",
      element("code", {}, "dflctl plan apply plan.yaml --start"), " gives one to the network."));
    byId("plan-tools").replaceChildren();
    return;
  }
  if (planView.version === null || !plans.versions.some((one) => one.version === planView.version && one.kept)) {
    const kept = plans.versions.filter((one) => one.kept);
    planView.version = kept.length > 0 ? kept[kept.length - 1].version : plans.version;
  }
  const drawing = ++planView.drawing;
  const before = earlier(planView.version);
  const text = await planText(planView.version);
  const former = planView.mode === "diff" && before !== null ? await planText(before) : null;
  if (drawing !== planView.drawing) return;
  keepFocus(byId("plan-tools"), () => drawPlanTools(before));
  const changes = text && former ? hunks(difference(lines(former.yaml), lines(text.yaml))) : null;
  const shownLines = !text ? [element("span", {}, "The daemon does not keep this version.")] :
    changes === null ? lines(text.yaml).map(yamlLine) :
      changes.some(([sign]) => sign !== "@") ? changes.map(diffLine) : [element("span", {}, "Nothing changed.")];
  if (text && !text.whole) shownLines.push(element("span", {class: "hunk"}, "The rest is left out; dflctl plan show has all of it."));
  const formerTop = body.querySelector(".versions")?.scrollTop || 0;
  keepFocus(body, () => fill(body,
    element("div", {class: "card"}, element("ol", {class: "versions", reversed: true, "aria-label": "Versions of the plan"},
      [...plans.versions].reverse().map(versionButton))),
    element("pre", {class: "doc card", tabindex: "0", role: "region", "aria-label": "Plan, version " + planView.version}, shownLines)));
  const list = body.querySelector(".versions");
  if (list) list.scrollTop = formerTop;
}

listen("plans", drawPlan);
