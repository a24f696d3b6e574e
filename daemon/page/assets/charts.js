// The charts. Each draws those of its series that have a number.

const kCharts = [
  {id: "loss", title: "Loss", format: figure, log: true, series: [
    {key: "loss", label: "training"},
    {key: "test_loss", label: "test rows", dash: true},
    {key: "loss_mean_model", label: "of the mean model"},
    {key: "mean_loss", label: "mean of the nodes", dash: true}]},
  {id: "accuracy", title: "Accuracy", format: percent, series: [
    {key: "accuracy", label: "of the own model", runLabel: "mean of the nodes"},
    {key: "accuracy_mean_model", label: "of the mean model", dash: true}],
    none: "There is no accuracy yet: it comes with the first evaluation of a classification."},
  {id: "consensus", title: "Consensus distance", format: figure, log: true, logFirst: true, series: [
    {key: "consensus", label: "to the neighbours' models"},
    {key: "consensus_error", label: "mean |w − mean w|²"}],
    none: "There is no distance yet: it comes with the first model of a neighbour."},
  {id: "traffic", title: "Bytes sent", format: bytes, log: true, series: [
    {key: "bytes_sent", label: "sent"},
    {key: "dense_bytes_sent", label: "the same models as dense fp32", dash: true}]},
  {id: "speed", title: "Steps per second", format: figure, zero: true, series: [
    {key: "steps_per_second", label: "this node"}]},
  {id: "lag", title: "Steps behind this node", format: figure, series: [
    {key: "lag", label: "the slowest linked neighbour"}]},
];
// Columns that are no chart of their own.
const kNoChart = ["t", "step", "round", "bytes_received", "mixing", "nodes"];

const kSpans = [["5 min", 300], ["1 h", 3600], ["12 h", 43200], ["7 d", 604800], ["All", Infinity]];
const chartChoice = {x: "t", span: Infinity, log: new Map(), table: new Set()};
const drawn = new Map();  // id: {card, plot, ...}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// A run's metrics on request have charts of their own.
function chartsOf(points) {
  const known = new Set(kNoChart.concat(kCharts.flatMap((chart) => chart.series.map((one) => one.key))));
  const extra = Object.keys(points).filter((name) => !known.has(name)).map((name) => ({
    id: name, title: name.replaceAll("_", " "), format: figure, log: true,
    series: [{key: name, label: name.replaceAll("_", " ")}]}));
  const charts = shown.kind === "run" ? kCharts.filter((chart) => chart.series.some((one) => points[one.key])) : kCharts;
  return charts.concat(extra);
}

// The columns of a chart, with rising x: what a log scale cannot show, and
// points that go back, are left out.
function columnsOf(chart, points, log) {
  const series = chart.series.filter((one) => (points[one.key] || []).some(isNumber));
  const x = [];
  const columns = series.map(() => []);
  const xs = points[chartChoice.x] || [];
  const newest = points.t[points.t.length - 1];
  let last = -Infinity;
  for (let i = 0; i < points.t.length; ++i) {
    if (points.t[i] < newest - chartChoice.span) continue;
    const gap = xs[i] === null && chartChoice.x !== "t";
    const at = gap ? last + 1e-9 : xs[i];
    if (!isNumber(at) || at <= last) continue;
    last = at;
    x.push(at);
    series.forEach((one, place) => {
      const value = gap ? null : points[one.key][i];
      columns[place].push(isNumber(value) && !(log && value <= 0) ? value : null);
    });
  }
  return {series, data: [x, ...columns]};
}

function xText(value) {
  if (chartChoice.x === "bytes_sent") return bytes(value);
  if (chartChoice.x === "step") return count(value);
  return shown.kind === "run" ? span(value) : clock(value);
}

function axes(chart, log) {
  const common = {stroke: () => color("--soft"), grid: {stroke: () => color("--grid"), width: 1},
    ticks: {stroke: () => color("--grid"), width: 1}, font: "12px system-ui, sans-serif"};
  const x = {...common, space: 70};
  if (chartChoice.x === "bytes_sent") {
    x.values = (plot, ticks) => ticks.map(bytes);
  } else if (chartChoice.x === "step") {
    x.values = (plot, ticks) => ticks.map(count);
  } else if (shown.kind === "run") {
    x.values = (plot, ticks) => ticks.map((tick) => figure(tick) + " s");
  } else {
    x.values = kTimeFormats;
  }
  const y = {...common, size: 66, values: (plot, ticks) => ticks.map((tick) => tick === null ? "" : chart.format(tick))};
  if (log) {
    // Only powers of ten, where there are some.
    y.filter = (plot, ticks) => {
      const tens = ticks.map((tick) => Math.abs(Math.log10(tick) % 1) < 1e-9 ? tick : null);
      return tens.filter((tick) => tick !== null).length >= 2 ? tens : ticks;
    };
  }
  return [x, y];
}

// One value, or none that differs, needs room too.
function yRange(chart, log) {
  return (plot, low, high) => {
    if (low === null || high === null || !isNumber(low)) return log ? [0.1, 1] : [0, 1];
    if (log) {
      return [10 ** Math.floor(Math.log10(low) + 1e-9), 10 ** Math.max(Math.ceil(Math.log10(high) - 1e-9), Math.floor(Math.log10(low) + 1e-9) + 1)];
    }
    const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    const from = low >= 0 && (chart.zero || low - room < 0) ? 0 : low - room;
    return [from, chart.format === percent ? Math.min(high + room, Math.max(1, high)) : high + room];
  };
}

function legendValues(entry, index) {
  entry.columns.data.slice(1).forEach((column, place) => {
    let at = index;
    if (at === null || at === undefined) {
      at = column.length - 1;
      while (at > 0 && column[at] === null) --at;
    }
    entry.values[place].textContent = isNumber(column[at]) ? entry.chart.format(column[at]) : kNothing;
  });
  const x = entry.columns.data[0];
  entry.at.textContent = index === null || index === undefined ? "" : "at " + (chartChoice.x === "step" ? "step " : "") + xText(x[index]);
}

function describe(entry) {
  const texts = entry.columns.series.map((one, place) => {
    const column = entry.columns.data[place + 1].filter(isNumber);
    if (column.length === 0) return one.label + ": no values";
    const format = entry.chart.format;
    return labelOf(one) + ": from " + format(column[0]) + " to " + format(column[column.length - 1]) +
      ", least " + format(Math.min(...column)) + ", most " + format(Math.max(...column));
  });
  return entry.chart.title + ". " + texts.join("; ") + ". Arrow keys move through the points.";
}

function labelOf(one) { return shown.kind === "run" && one.runLabel ? one.runLabel : one.label; }

function colorOf(place) { return "--series-" + (place % 4 + 1); }

// Of ticks so many seconds apart: how each is written, and what stands below the
// first of a new minute, hour, day, month or year (uPlot's form of it).
const kTimeFormats = [
  [86400, "{D} {MMM}", null, null, null, null, null, null, 1],
  [60, "{HH}:{mm}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
];

// What decides whether a plot can keep its object: its series, axes and scale.
function shapeOf(entry, log) {
  return [chartChoice.x, log, entry.columns.series.map((one) => one.key).join()].join("|");
}

// Where on the horizontal axis the plan changed, or something befell the
// network.
function marks() {
  const at = {t: (event) => isNumber(event.t) ? event.t : event.unix_ms / 1000, step: (event) => event.step}[chartChoice.x];
  if (!at) return [];
  return shown.events.filter((event) => ["plan-adopted", "plan", "network"].includes(event.kind)).map(at).filter((x) => x > 0);
}

function drawMarks(plot) {
  const {left, top, width, height} = plot.bbox;
  const context = plot.ctx;
  context.save();
  context.strokeStyle = color("--soft");
  context.globalAlpha = 0.6;
  context.setLineDash([2, 4]);
  for (const x of marks()) {
    const at = Math.round(plot.valToPos(x, "x", true)) + 0.5;
    if (!(at >= left && at <= left + width)) continue;
    context.beginPath();
    context.moveTo(at, top);
    context.lineTo(at, top + height);
    context.stroke();
  }
  context.restore();
}

function makePlot(entry, log) {
  if (entry.plot) entry.plot.destroy();
  const series = entry.columns.series.map((one, place) => ({
    stroke: () => color(colorOf(place)), width: 2, dash: one.dash ? [6, 4] : undefined,
    points: {show: entry.columns.data[0].length < 2}, spanGaps: false}));
  const time = chartChoice.x === "t" && shown.kind === "node";
  entry.plot = new uPlot({
    width: Math.max(entry.holder.clientWidth, 100), height: entry.holder.clientHeight || 210,
    series: [{}, ...series],
    axes: axes(entry.chart, log),
    scales: {x: {time}, y: {distr: log ? 3 : 1, range: yRange(entry.chart, log)}},
    legend: {show: false},
    cursor: {drag: {x: false, y: false}, sync: {key: "page"}, points: {size: 7}},
    hooks: {setCursor: [(plot) => legendValues(entry, plot.cursor.idx)], drawAxes: [drawMarks]},
  }, entry.columns.data, entry.holder);
}

function moveCursor(entry, event) {
  const step = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity}[event.key];
  if (step === undefined || !entry.plot) return;
  event.preventDefault();
  const x = entry.columns.data[0];
  const from = entry.plot.cursor.idx;
  const at = Math.min(Math.max((isNumber(from) ? from : x.length - 1) + step, 0), x.length - 1);
  const left = entry.plot.valToPos(x[at], "x");
  const y = entry.columns.data.slice(1).map((column) => column[at]).find(isNumber);
  entry.plot.setCursor({left, top: y === undefined ? 10 : entry.plot.valToPos(y, "y")});
}

function makeCard(chart) {
  const entry = {chart, plot: null, shape: "", columns: null, values: []};
  entry.holder = element("div", {class: "plot", role: "img", tabindex: "0",
    onkeydown: (event) => moveCursor(entry, event)});
  entry.legend = element("div", {class: "legend"});
  entry.at = element("span", {});
  entry.empty = element("div", {class: "empty"}, chart.none || "Nothing to draw yet.");
  entry.data = element("div", {class: "data", tabindex: "0", role: "region", "aria-label": chart.title + " as a table"});
  entry.logButton = chart.log ? element("button", {type: "button", onclick: () => {
    chartChoice.log.set(chart.id, !isLog(chart));
    drawCharts();
  }}, "Log scale") : null;
  entry.tableButton = element("button", {type: "button", "aria-pressed": "false", onclick: () => {
    if (!chartChoice.table.delete(chart.id)) chartChoice.table.add(chart.id);
    drawCharts();
  }}, "Table");
  entry.logButton?.setAttribute("aria-label", "Log scale, " + chart.title);
  entry.tableButton.setAttribute("aria-label", "Table, " + chart.title);
  entry.card = element("div", {class: "chart card", id: "chart-" + chart.id},
    element("div", {class: "bar-top"}, element("h3", {}, chart.title), entry.logButton, entry.tableButton),
    entry.legend, entry.holder, entry.empty, entry.data);
  new ResizeObserver(() => {
    if (entry.plot && entry.holder.clientWidth > 0) {
      entry.plot.setSize({width: entry.holder.clientWidth, height: entry.holder.clientHeight});
    }
  }).observe(entry.holder);
  return entry;
}

function isLog(chart) {
  const chosen = chartChoice.log.get(chart.id);
  return chart.log === true && (chosen === undefined ? chart.logFirst === true : chosen);
}

function fillTable(entry) {
  const x = entry.columns.data[0];
  const rows = [];
  const most = 30;
  for (let i = 0; i < Math.min(most, x.length); ++i) {
    const at = x.length <= most ? i : Math.round(i * (x.length - 1) / (most - 1));
    rows.push(element("tr", {}, element("th", {scope: "row"}, xText(x[at])),
      entry.columns.data.slice(1).map((column) => element("td", {class: "number"}, isNumber(column[at]) ? entry.chart.format(column[at]) : kNothing))));
  }
  const titles = {t: "Time", step: "Step", bytes_sent: "Bytes sent"};
  fill(entry.data, element("table", {},
    element("thead", {}, element("tr", {}, element("th", {scope: "col"}, titles[chartChoice.x]),
      entry.columns.series.map((one) => element("th", {scope: "col", class: "number"}, labelOf(one))))),
    element("tbody", {}, rows.reverse())));
}

function drawChart(entry, points) {
  const chart = entry.chart;
  const log = isLog(chart);
  entry.columns = columnsOf(chart, points, log);
  const empty = entry.columns.data[0].length === 0 || entry.columns.series.length === 0;
  const table = chartChoice.table.has(chart.id) && !empty;
  entry.empty.hidden = !empty;
  entry.holder.hidden = empty || table;
  entry.data.hidden = !table;
  entry.legend.hidden = empty;
  entry.tableButton.hidden = empty;
  entry.tableButton.setAttribute("aria-pressed", String(table));
  if (entry.logButton) {
    entry.logButton.hidden = empty || table;
    entry.logButton.setAttribute("aria-pressed", String(log));
  }
  if (empty) return;
  const shape = shapeOf(entry, log);
  if (shape !== entry.shape) {
    entry.values = entry.columns.series.map(() => element("b", {}));
    entry.legend.replaceChildren(...entry.columns.series.map((one, place) => {
      const sample = element("i", {class: one.dash ? "dash" : ""});
      sample.style.borderColor = "var(" + colorOf(place) + ")";
      return element("span", {}, sample, labelOf(one) + " ", entry.values[place]);
    }), entry.at);
  }
  if (table) {
    fillTable(entry);
  } else if (shape !== entry.shape || !entry.plot) {
    makePlot(entry, log);
  } else {
    entry.plot.setData(entry.columns.data);
  }
  entry.shape = shape;
  legendValues(entry, table || !entry.plot ? null : entry.plot.cursor.idx);
  entry.holder.setAttribute("aria-label", describe(entry));
}

function drawCharts() {
  if (document.hidden) return;
  const points = allPoints();
  if (!points.t) points.t = [];
  const nothing = kCharts.every((chart) => chart.series.every((one) => !(points[one.key] || []).some((value) => isNumber(value) && value !== 0)));
  byId("no-charts").hidden = !nothing;
  byId("charts").hidden = nothing;
  byId("chart-tools").hidden = nothing;
  if (nothing) return;
  byId("marks-note").hidden = marks().length === 0;
  for (const chart of chartsOf(points)) {
    if (!drawn.has(chart.id)) {
      drawn.set(chart.id, makeCard(chart));
      byId("charts").append(drawn.get(chart.id).card);
    }
    drawChart(drawn.get(chart.id), points);
  }
}

function choice(name, values, chosen, choose) {
  return element("div", {class: "choice", role: "group", "aria-label": name}, values.map(([text, value]) =>
    element("button", {type: "button", "aria-pressed": String(chosen() === value), onclick: (event) => {
      choose(value);
      for (const button of event.target.parentNode.children) {
        button.setAttribute("aria-pressed", String(button === event.target));
      }
      drawCharts();
    }}, text)));
}

function makeChartTools() {
  byId("chart-tools").append(
    choice("Horizontal axis", [["Time", "t"], ["Steps", "step"], ["Bytes", "bytes_sent"]],
      () => chartChoice.x, (value) => { chartChoice.x = value; }));
  if (shown.kind === "node") {
    byId("chart-tools").append(
      choice("How far back", kSpans, () => chartChoice.span, (value) => { chartChoice.span = value; }));
  }
}

// The colours have changed.
function redrawCharts() {
  for (const entry of drawn.values()) entry.plot?.redraw(false, true);
}

listen("points events", drawCharts);
document.addEventListener("visibilitychange", drawCharts);
