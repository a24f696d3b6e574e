"use strict";
// Numbers and times as text, and elements. Text enters the page as text nodes
// only, never as HTML.

// An element: element("td", {class: "number"}, "5"). Null children are left
// out; a property that begins with "on" is a listener.
function element(tag, properties, ...children) {
  const made = document.createElement(tag);
  setAll(made, properties);
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

function svgElement(tag, properties, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAll(made, properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

function setAll(made, properties) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) {
      made.addEventListener(name.slice(2), value);
    } else {
      made.setAttribute(name, value === true ? "" : value);
    }
  }
}

function byId(id) { return document.getElementById(id); }

// Puts `children` in the place of what `parent` holds, unless it looks the
// same: what a person has selected or focused stays.
function fill(parent, ...children) {
  const fresh = document.createElement("div");
  fresh.append(...children.flat().filter((child) => child !== null && child !== undefined));
  if (fresh.innerHTML === parent.innerHTML) return;
  parent.replaceChildren(...fresh.childNodes);
}

function chip(kind, text) { return element("span", {class: "chip " + kind}, text); }

const kNothing = "–";

function isNumber(value) { return typeof value === "number" && Number.isFinite(value); }

// 0.4102, 12.3, 1.2e-7
function figure(value) {
  if (!isNumber(value)) return kNothing;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(2);
  if (size >= 1000) return count(Math.round(value));
  return String(Number(value.toPrecision(4)));
}

// 1,234,567
function count(value) {
  if (!isNumber(value)) return kNothing;
  return Math.round(value).toLocaleString("en-US");
}

// 1.23 MB; decimal, as dflctl has it.
function bytes(value) {
  if (!isNumber(value)) return kNothing;
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    ++unit;
  }
  return (unit === 0 ? String(Math.round(value)) : Number(value.toPrecision(3)).toString()) + " " + units[unit];
}

function percent(value) {
  return isNumber(value) ? (100 * value).toFixed(1) + " %" : kNothing;
}

// 3 h 12 min, 45 s, 0.21 s
function span(seconds) {
  if (!isNumber(seconds)) return kNothing;
  if (seconds < 1) return Number(seconds.toPrecision(2)) + " s";
  if (seconds < 10) return Number(seconds.toFixed(1)) + " s";
  if (seconds < 60) return Math.round(seconds) + " s";
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([size]) => seconds >= size);
  const [size, name] = parts[first];
  const whole = Math.floor(seconds / size);
  const [nextSize, nextName] = parts[first + 1];
  const rest = Math.floor((seconds - whole * size) / nextSize);
  return whole + " " + name + (rest > 0 ? " " + rest + " " + nextName : "");
}

// "12 s ago", "now"
function ago(seconds) {
  if (!isNumber(seconds)) return "never";
  if (seconds < 2) return "now";
  return (seconds < 3600 ? span(Math.floor(seconds)).replace(/ min .*/, " min") : span(seconds)) + " ago";
}

// A moment by the viewer's clock: "14:03:12", with the day where it is another.
function clock(unixSeconds) {
  const then = new Date(unixSeconds * 1000);
  const time = then.toLocaleTimeString("en-GB");
  if (then.toDateString() === new Date().toDateString()) return time;
  return then.toLocaleDateString("en-GB", {day: "numeric", month: "short"}) + " " + time;
}

function plural(number, one, many) {
  return count(number) + " " + (number === 1 ? one : many);
}

// Draws `parent` anew; who was on a button of it is then on the chosen one.
function keepFocus(parent, draw) {
  const had = parent.contains(document.activeElement) && document.activeElement.tagName === "BUTTON";
  draw();
  if (had && !parent.contains(document.activeElement)) {
    parent.querySelector("[aria-pressed=true], [aria-current=true]")?.focus({preventScroll: true});
  }
}
