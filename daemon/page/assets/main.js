// Begins: with the document that the page holds, or with the daemon that it
// came from.

function setTheme(theme) {
  if (theme === "auto") {
    delete document.documentElement.dataset.theme;
  } else {
    document.documentElement.dataset.theme = theme;
  }
  const names = {auto: "system", light: "light", dark: "dark"};
  byId("theme").textContent = "◐ " + names[theme];
  byId("theme").setAttribute("aria-label", "Theme: " + names[theme]);
  try {
    localStorage.setItem("dfl-theme", theme);
  } catch (error) {
    // A file, or a browser that keeps nothing.
  }
  redrawCharts();
}

function savedTheme() {
  try {
    return localStorage.getItem("dfl-theme") || "auto";
  } catch (error) {
    return "auto";
  }
}

function begin() {
  const order = ["auto", "light", "dark"];
  let theme = order.includes(savedTheme()) ? savedTheme() : "auto";
  setTheme(theme);
  byId("theme").addEventListener("click", () => {
    theme = order[(order.indexOf(theme) + 1) % order.length];
    setTheme(theme);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);
  const given = byId("document");
  if (given) {
    document.body.classList.add("run");
    showDocumentNow(given.textContent);
  } else {
    makeChartTools();
    drawLive();
    followNode();
  }
}

function showDocumentNow(text) {
  shown.kind = JSON.parse(text).kind;
  makeChartTools();
  showDocument(text);
}

begin();
