// Draws every model as docs/pictures/<process id>.svg and .png: node render.mjs [--check] [--root DIR]
// Beside them it keeps <process id>.sha256 (the format of sha256sum): the sums of the model and of the
// two pictures made from it. --check compares these and needs no browser: how text is drawn differs
// between machines, what a picture was made from does not. Exit 0: done or up to date, 1: not, 69: no
// browser or font on this machine.
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const here = dirname(fileURLToPath(import.meta.url));
const { values: options } = parseArgs({
  options: { check: { type: 'boolean' }, root: { type: 'string', default: join(here, '..', '..') } },
});
const models = join(resolve(options.root), 'bpmn');
const pictures = join(resolve(options.root), 'docs', 'pictures');

const unavailable = 69;

const drawings = await allDrawings();
process.exitCode = options.check ? await check() : await draw();

async function allDrawings() {
  const names = (await readdir(models)).filter((name) => name.endsWith('.bpmn')).sort();
  return Promise.all(names.map(async (name) => {
    const file = join(models, name);
    const xml = await readFile(file, 'utf8');
    const id = /<bpmn:process id="(\w+)"/.exec(xml)?.[1];
    if (!id) {
      throw new Error(`${file}: no <bpmn:process id="…"> found, expected one`);
    }
    return { id, file, xml, base: join(pictures, id) };
  }));
}

async function draw() {
  const { Painter, Unavailable } = await import('./painter.mjs');
  await mkdir(pictures, { recursive: true });
  let painter;
  try {
    painter = await Painter.open();
    for (const drawing of drawings) {
      await paint(painter, drawing);
    }
    return 0;
  } catch (err) {
    if (!(err instanceof Unavailable)) {
      throw err;
    }
    console.error(err.message);
    return unavailable;
  } finally {
    await painter?.close();
  }
}

async function paint(painter, { id, file, xml, base }) {
  const { svg, png } = await painter.paint(xml);
  await writeFile(`${base}.svg`, svg);
  await writeFile(`${base}.png`, png);
  await writeFile(`${base}.sha256`, await sums(base, file));
  console.log(`render: ${id}.svg and ${id}.png drawn from ${file}`);
}

async function check() {
  const problems = [...await orphans(), ...(await Promise.all(drawings.map(staleness))).flat()];
  for (const problem of problems) {
    console.error(`render: ${problem}; draw again with: make picture`);
  }
  return problems.length === 0 ? 0 : 1;
}

async function orphans() {
  const known = new Set(drawings.map(({ id }) => `${id}.sha256`));
  const present = await readdir(pictures).catch(() => []);
  return present.filter((name) => name.endsWith('.sha256') && !known.has(name))
    .map((name) => `docs/pictures/${name} belongs to no model, remove it and its pictures`);
}

async function staleness({ id, file, base }) {
  try {
    const recorded = await readFile(`${base}.sha256`, 'utf8');
    return await sums(base, file) === recorded
      ? []
      : [`docs/pictures/${id}.svg and .png are not those made from the model as it is now`];
  } catch (err) {
    return [`docs/pictures: ${err.message}`];
  }
}

async function sums(base, file) {
  const lines = await Promise.all([file, `${base}.svg`, `${base}.png`].map(async (path) => {
    const sum = createHash('sha256').update(await readFile(path)).digest('hex');
    return `${sum}  ${relative(pictures, path)}\n`;
  }));
  return lines.join('');
}
