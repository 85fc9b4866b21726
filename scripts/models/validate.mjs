// Validates element templates against the official schema: node validate.mjs FILE…
// What the schema calls deprecated counts as a finding too. Exit 0: valid, 1: findings, 2: wrong use.
import { readFile } from 'node:fs/promises';

import { getZeebeSchemaVersion, validateZeebe } from '@bpmn-io/element-templates-validator';

const files = process.argv.slice(2);
if (files.length === 0) {
  console.error('validate: no file given, expected at least one element template');
  process.exit(2);
}

let findings = 0;
for (const file of files) {
  for (const finding of await validate(file)) {
    console.error(`${file}: ${finding}`);
    findings++;
  }
}
console.log(`validate: ${files.length} template(s), schema ${getZeebeSchemaVersion()}, ${findings} finding(s)`);
process.exit(findings === 0 ? 0 : 1);

async function validate(file) {
  const text = await readFile(file, 'utf8');
  try {
    JSON.parse(text);
  } catch (err) {
    return [`not readable as JSON: ${err.message}`];
  }
  const { errors, warnings } = validateZeebe(text);
  return [...errors ?? [], ...warnings ?? []].map(
    ({ instancePath, message }) => `${instancePath || '/'}: ${message}`);
}
