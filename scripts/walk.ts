/**
 * Runs flows of the product from its sources and counts the files and functions that ran.
 *
 *   npm run walk                 prints the size of each walk, and fails for a walk beyond its budget
 *   npm run walk -- FLOW…        the same for these flows
 *   npm run walk -- FLOW --list  prints the files and functions of these flows, too
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { toolEnvironment } from './toolchain.mjs';
import { budgets, type Size } from './walk/budgets.ts';
import { type Flow, flows, type Place } from './walk/flows.ts';
import type { Walked } from './walk/traced-process.ts';

/** Runs of each flow. The shortest walk counts: work in the background falls into the others. */
const runs = 3;

async function run(flow: Flow): Promise<ReadonlyMap<string, Walked>> {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-walk-')));
  mkdirSync(join(directory, 'home'), { mode: 0o700 });
  const env = {
    ...toolEnvironment(),
    TMPDIR: directory,
    ORATORIO_HOME: join(directory, 'home'),
    ORATORIO_LOG: 'debug',
  };
  const place: Place = { directory, env, ends: [] };
  try {
    return await flow(place);
  } finally {
    for (const end of place.ends.toReversed()) await end();
    rmSync(directory, { recursive: true, force: true });
  }
}

const sizeOf = (walked: Walked): Size => ({ files: walked.size, functions: [...walked.values()].flat().length });

/** The shortest walk of each part of a flow. */
async function shortest(flow: Flow): Promise<Map<string, Walked>> {
  const walks = new Map<string, Walked>();
  for (let index = 0; index < runs; index += 1) {
    for (const [part, walked] of await run(flow)) {
      const before = walks.get(part);
      if (!before || sizeOf(walked).functions < sizeOf(before).functions) walks.set(part, walked);
    }
  }
  return walks;
}

const { positionals, values } = parseArgs({ allowPositionals: true, options: { list: { type: 'boolean' } } });
const unknown = positionals.filter((name) => !(name in flows));
if (unknown.length > 0) {
  console.error(`✖ There is no flow ${unknown.join(', ')}.\n  The flows: ${Object.keys(flows).join(', ')}`);
  process.exit(2);
}
const columns = ['walk', 'files', 'budget', 'functions', 'budget'];
console.log(columns.map((title, index) => (index === 0 ? title.padEnd(20) : title.padStart(10))).join(''));
for (const [name, flow] of Object.entries(flows)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue;
  for (const [part, walked] of await shortest(flow)) {
    const { files, functions } = sizeOf(walked);
    const budget = budgets[part] ?? { files: 0, functions: 0 };
    const isBeyond = files > budget.files || functions > budget.functions;
    if (isBeyond) process.exitCode = 1;
    const numbers = [files, budget.files, functions, budget.functions].map((number) => `${number}`.padStart(10));
    console.log(`${part.padEnd(20)}${numbers.join('')}${isBeyond ? '  ✖ beyond its budget' : ''}`);
    if (values.list) for (const [file, names] of walked) console.log(`  ${file}: ${names.join(', ')}`);
  }
}
