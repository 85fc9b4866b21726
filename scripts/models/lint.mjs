// Lints BPMN models: node lint.mjs FILE…
// Every model has to be sound in itself and fit for every engine version the project supports;
// a warning counts as much as an error. Exit 0: clean, 1: findings, 2: wrong use.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

import { BpmnModdle } from 'bpmn-moddle';

const require = createRequire(import.meta.url);
const { Linter } = require('bpmnlint');
const NodeResolver = require('bpmnlint/lib/resolver/node-resolver');
const zeebe = require('zeebe-bpmn-moddle/resources/zeebe.json');
const modeler = require('modeler-moddle/resources/modeler.json');

const engines = ['8-5', '8-6', '8-7', '8-8', '8-9', '8-10'];
const configurations = [
  'bpmnlint:recommended',
  ...engines.map((version) => `plugin:camunda-compat/camunda-cloud-${version}`),
];

const files = process.argv.slice(2);
if (files.length === 0) {
  console.error('lint: no file given, expected at least one .bpmn file');
  process.exit(2);
}

let findings = 0;
for (const file of files) {
  for (const finding of await lint(file)) {
    console.error(`${file}: ${finding}`);
    findings++;
  }
}
console.log(`lint: ${files.length} model(s), ${configurations.length} rule sets, ${findings} finding(s)`);
process.exit(findings === 0 ? 0 : 1);

async function lint(file) {
  let root, warnings;
  try {
    const moddle = new BpmnModdle({ zeebe, modeler });
    ({ rootElement: root, warnings } = await moddle.fromXML(await readFile(file, 'utf8')));
  } catch (err) {
    return [`not readable as BPMN: ${err.message}`];
  }
  const found = warnings.map((warning) => `import: ${warning.message}`);
  for (const configuration of configurations) {
    found.push(...await apply(configuration, root));
  }
  return found;
}

async function apply(configuration, root) {
  const linter = new Linter({
    config: { extends: configuration },
    resolver: new NodeResolver({ require }),
  });
  const results = await linter.lint(root);
  return Object.entries(results).flatMap(([rule, reports]) => reports.map(
    ({ category, id, message }) => `${configuration}: ${category} ${rule} at ${id}: ${message}`));
}
