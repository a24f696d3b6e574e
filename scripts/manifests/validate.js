// Validates Kubernetes objects in two ways, both offline:
//
//   schema   kubernetes-models: types, required fields, allowed values
//   strict   kubernetes-types and TypeScript: fields that do not exist
//
// Usage: node validate.js FILE...     each a stream of YAML documents
// The working directory has the node_modules. Custom resources (cert-manager,
// Prometheus operator) are checked by their schema alone.
//
// Exit code: 0 nothing found, 1 findings (printed as FILE: KIND/NAME: text).
"use strict";
const fs = require("fs");
const path = require("path");
const { createRequire } = require("module");
const from = createRequire(path.join(process.cwd(), "package.json"));
const yaml = from("js-yaml");
const ts = from("typescript");

const findings = [];

function objectsOf(file) {
  const found = [];
  for (const object of yaml.loadAll(fs.readFileSync(file, "utf8"))) {
    if (!object) continue;
    const name = (object.metadata && object.metadata.name) || "?";
    found.push({ file, object, title: `${file}: ${object.kind}/${name}` });
  }
  return found;
}

// "apps/v1" -> {group: "apps", version: "v1"}; the core has no group.
function groupOf(object) {
  const parts = String(object.apiVersion).split("/");
  return parts.length === 1
    ? { group: "", version: parts[0] }
    : { group: parts[0], version: parts[1] };
}

const CUSTOM = {
  "cert-manager.io": "@kubernetes-models/cert-manager",
  "monitoring.coreos.com": "@kubernetes-models/prometheus-operator",
};

function checkSchema({ object, title }) {
  const { group, version } = groupOf(object);
  const root = CUSTOM[group] || "kubernetes-models";
  const place = [root, group, version].filter(Boolean).join("/");
  let Model;
  try {
    Model = from(place)[object.kind];
  } catch (error) {
    // Named below.
  }
  if (!Model) {
    findings.push(`${title}: there is no ${object.kind} in ${object.apiVersion}`);
    return;
  }
  try {
    new Model(object).validate();
  } catch (error) {
    findings.push(`${title}: ${error.message}`);
  }
}

// Each object becomes a literal of its type, and the compiler refuses what the
// type has not.
function checkStrict(objects) {
  const source = "objects.ts";
  const titles = [];
  let text = "";
  objects.forEach(({ object, title }, i) => {
    const { group, version } = groupOf(object);
    if (CUSTOM[group]) return;
    const module = `kubernetes-types/${(group || "core").split(".")[0]}/${version}`;
    titles.push({ line: text.split("\n").length, title });
    text += `import type { ${object.kind} as Kind${i} } from "${module}";\n`;
    text += `export const object${i}: Kind${i} = ${JSON.stringify(object, null, 1)};\n`;
  });
  const options = {
    noEmit: true,
    strict: true,
    skipLibCheck: true,
    types: [],
    module: ts.ModuleKind.CommonJS,
    moduleResolution: ts.ModuleResolutionKind.Node10,
  };
  const host = ts.createCompilerHost(options);
  const whole = path.resolve(source);
  const { getSourceFile, fileExists, readFile } = host;
  host.getSourceFile = (name, ...rest) =>
    path.resolve(name) === whole
      ? ts.createSourceFile(name, text, ts.ScriptTarget.Latest)
      : getSourceFile.call(host, name, ...rest);
  host.fileExists = (name) =>
    path.resolve(name) === whole || fileExists.call(host, name);
  host.readFile = (name) =>
    path.resolve(name) === whole ? text : readFile.call(host, name);
  const program = ts.createProgram([source], options, host);
  for (const diagnostic of ts.getPreEmitDiagnostics(program)) {
    const message = ts.flattenDiagnosticMessageText(diagnostic.messageText, " ");
    let title = "?";
    if (diagnostic.file && diagnostic.start !== undefined) {
      const line =
        diagnostic.file.getLineAndCharacterOfPosition(diagnostic.start).line + 1;
      for (const known of titles) if (known.line <= line) title = known.title;
    }
    findings.push(`${title}: ${message}`);
  }
}

const objects = process.argv.slice(2).flatMap(objectsOf);
if (objects.length === 0) {
  console.error("validate.js: there is no object to validate");
  process.exit(1);
}
objects.forEach(checkSchema);
checkStrict(objects);
for (const text of findings) console.log(text);
console.log(`${objects.length} objects, ${findings.length} findings`);
process.exit(findings.length === 0 ? 0 : 1);
