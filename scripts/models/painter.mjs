// A painter turns BPMN into pictures with bpmn-js in a headless Chromium of its own.
import { spawn } from 'node:child_process';
import { access, constants, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(import.meta.url);
const library = require.resolve('bpmn-js/dist/bpmn-viewer.production.min.js');
const browsers = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const quietly = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync', '--hide-scrollbars'];
const timeout = 60_000;
const margin = 24; // around the drawing, in its own units
const density = 2; // pixels of the PNG per unit

// Widths are those of Arial, and so of every font made to its measures: the text breaks where it
// breaks on a reader's screen.
const probe = { text: 'Aguardar a hora do reenvio', font: '100px Arial', width: 1219, tolerance: 12 };

// Unavailable says what this machine lacks and how to install it.
export class Unavailable extends Error {
  constructor(what, remedy) {
    super(`NOT RUN: pictures of the models: ${what} — install with: ${remedy}`);
  }
}

export class Painter {
  #browser;
  #folder;

  static async open() {
    const painter = new Painter();
    painter.#browser = await findBrowser();
    painter.#folder = await mkdtemp(join(tmpdir(), 'painter-'));
    return painter;
  }

  async close() {
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  // paint draws one model on white: { svg: string, png: Buffer }.
  async paint(xml) {
    const { svg, width, height } = frame(await this.#draw(xml));
    const page = await this.#page(`<style>body{margin:0}svg{display:block}</style>${svg}`);
    const png = join(this.#folder, 'picture.png');
    await this.#run([`--screenshot=${png}`, `--window-size=${width},${height}`,
      `--force-device-scale-factor=${density}`, page]);
    return { svg, png: await readFile(png) };
  }

  async #draw(xml) {
    const page = await this.#page(`
      <div id="canvas" style="width:2000px;height:2000px"></div>
      <script>Math.random = () => 0.5; // ids in the drawing are the same every time</script>
      <script src="${pathToFileURL(library)}"></script>
      <script>
        const probe = document.createElement('canvas').getContext('2d');
        probe.font = ${JSON.stringify(probe.font)};
        const width = probe.measureText(${JSON.stringify(probe.text)}).width;
        const viewer = new BpmnJS({ container: '#canvas' });
        viewer.importXML(${script(xml)})
          .then(({ warnings }) => viewer.saveSVG().then(({ svg }) => ({ svg, width, warnings: warnings.map(String) })))
          .catch((err) => ({ error: String(err) }))
          .then((answer) => { document.title = encodeURIComponent(JSON.stringify(answer)); });
      </script>`);
    const dom = await this.#run(['--virtual-time-budget=30000', '--dump-dom', page]);
    const answer = /<title>(.*?)<\/title>/s.exec(dom)?.[1];
    if (!answer) {
      throw new Error('the browser gave no drawing');
    }
    const { svg, width, warnings = [], error } = JSON.parse(decodeURIComponent(answer));
    if (error || warnings.length > 0) {
      throw new Error(`the model cannot be drawn: ${error ?? warnings.join('; ')}`);
    }
    if (Math.abs(width - probe.width) > probe.tolerance) {
      throw new Unavailable(`no font with Arial's measures (the probe is ${Math.round(width)} wide, expected ${probe.width})`,
        'apt-get install -y fonts-liberation');
    }
    return svg;
  }

  async #page(body) {
    const file = join(this.#folder, 'page.html');
    await writeFile(file, `<!doctype html><html lang="pt-BR"><head><meta charset="utf-8"><title></title></head><body>${body}</body></html>`);
    return pathToFileURL(file).href;
  }

  #run(args) {
    return new Promise((resolve, reject) => {
      const child = spawn(this.#browser, [...quietly, `--user-data-dir=${join(this.#folder, 'profile')}`, ...args],
        { stdio: ['ignore', 'pipe', 'pipe'], timeout, env: { ...process.env, HOME: this.#folder } });
      let out = '', err = '';
      child.stdout.on('data', (data) => { out += data; });
      child.stderr.on('data', (data) => { err += data; });
      child.on('error', reject);
      child.on('close', (code, signal) => {
        code === 0 ? resolve(out) : reject(new Error(`${this.#browser} ended with ${signal ?? code}: ${err.trim()}`));
      });
    });
  }
}

// frame puts a drawing on a white sheet with a margin.
function frame(svg) {
  const [, x, y, w, h] = /viewBox="([-\d.]+) ([-\d.]+) ([-\d.]+) ([-\d.]+)"/.exec(svg).map(Number);
  const box = [Math.floor(x - margin), Math.floor(y - margin), Math.ceil(w + 2 * margin), Math.ceil(h + 2 * margin)];
  const [left, top, width, height] = box;
  const sheet = `<rect x="${left}" y="${top}" width="${width}" height="${height}" fill="white"/>`;
  return {
    width, height,
    svg: svg
      .replace(/<svg [^>]*>/, (tag) => tag
        .replace(/ width="[^"]*"/, ` width="${width}"`)
        .replace(/ height="[^"]*"/, ` height="${height}"`)
        .replace(/viewBox="[^"]*"/, `viewBox="${box.join(' ')}"`) + sheet),
  };
}

// script is text as a JavaScript literal that an HTML parser does not end early.
function script(text) {
  return JSON.stringify(text).replaceAll('<', '\\u003c');
}

async function findBrowser() {
  const named = process.env.CHROME_BIN ? [process.env.CHROME_BIN] : [];
  const folders = (process.env.PATH ?? '').split(delimiter);
  for (const file of [...named, ...browsers.flatMap((name) => folders.map((folder) => join(folder, name)))]) {
    if (await access(file, constants.X_OK).then(() => true, () => false)) {
      return file;
    }
  }
  throw new Unavailable('no Chromium found (CHROME_BIN, then the PATH)', 'apt-get install -y chromium-headless-shell');
}
