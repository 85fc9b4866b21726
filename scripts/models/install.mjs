// Installs what package-lock.json pins, once per lock: node install.mjs
// Uses nothing but Node itself. Exit 0: installed, 1: failed, 69: this machine cannot provide it
// (no npm, no registry in reach, Node too old); the last line then says what to do.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const oldestNode = 20;
const stamp = join(here, 'node_modules', '.installed-lock');
const lock = createHash('sha256').update(readFileSync(join(here, 'package-lock.json'))).digest('hex');
const unavailable = 69;
const patience = 4 * 60_000; // below the caller's own limit, so that no npm outlives us

if (Number(process.versions.node.split('.')[0]) < oldestNode) {
  give(unavailable, `node is ${process.versions.node}, expected ${oldestNode} or newer`);
}
if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== lock) {
  install();
  writeFileSync(stamp, lock);
}

function install() {
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  const { error, status, stderr } = spawnSync(npm, ['ci', '--no-progress'], { cwd: here, encoding: 'utf8', timeout: patience });
  if (error?.code === 'ENOENT') {
    give(unavailable, 'npm is not installed');
  }
  if (error?.code === 'ETIMEDOUT') {
    give(unavailable, `npm ci did not end in ${patience / 60_000} minutes`);
  }
  if (status !== 0) {
    const [, network] = /npm error code (ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED)\b/.exec(stderr) ?? [];
    if (network) {
      give(unavailable, `the npm registry is out of reach (${network})`);
    }
    give(1, `npm ci failed: ${stderr || error?.message}`);
  }
}

function give(code, message) {
  console.error(`install: ${message.trim()}`);
  process.exit(code);
}
