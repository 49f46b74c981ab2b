import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as v from 'valibot';
import { type Benchmark, type Context, median, type Result, runLoad } from './harness.ts';

const Craft = v.object({
  commands: v.object({ sandboxed: v.array(v.number()), bare: v.array(v.number()) }),
  output: v.object({ grownMiB: v.number(), blockMs: v.number(), seconds: v.number() }),
  decisionsMs: v.array(v.number()),
  promptsMs: v.array(v.number()),
});

const peer = join(import.meta.dirname, 'peers', 'craft.ts');
const options = ['--conditions=development', '--disable-warning=ExperimentalWarning'];

async function round(samples: number, mebibytes: number): Promise<v.InferOutput<typeof Craft>> {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-bench-')));
  try {
    return await runLoad(process.execPath, [...options, peer, directory, samples, mebibytes], Craft);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function run({ quick, rounds }: Context): Promise<Result> {
  const mebibytes = quick ? 20 : 100;
  const found: v.InferOutput<typeof Craft>[] = [];
  for (let index = 0; index < rounds; index += 1) found.push(await round(50, mebibytes));
  const over = (pick: (one: (typeof found)[number]) => number): number => median(found.map(pick));
  const sandboxed = over(({ commands }) => median(commands.sandboxed));
  const bare = over(({ commands }) => median(commands.bare));
  const added = over(({ commands }) => median(commands.sandboxed.map((ms, index) => ms - (commands.bare[index] ?? 0))));
  const decisionMs = over(({ decisionsMs }) => median(decisionsMs));
  const promptMs = over(({ promptsMs }) => median(promptsMs));
  const grownMiB = over(({ output }) => output.grownMiB);
  const blockMs = over(({ output }) => output.blockMs);
  return {
    tables: [
      {
        title: 'Milliseconds, median',
        columns: ['work', 'ms'],
        rows: [
          ['the command true, in the sandbox', sandboxed],
          ['the same without a sandbox', bare],
          ['decision of 50 rules about a command', decisionMs],
          ['assembly of a system prompt with 32 KiB of instructions', promptMs],
        ],
      },
      {
        title: `A command that prints ${mebibytes} MiB`,
        columns: ['memory grown, MiB', 'longest block of the event loop, ms', 'seconds'],
        rows: [[grownMiB, blockMs, over(({ output }) => output.seconds)]],
      },
    ],
    checks: [
      { what: 'sandbox, added to a command', measured: added, atMost: 8, unit: ' ms' },
      { what: 'decision about a command', measured: decisionMs, atMost: 0.2, unit: ' ms' },
      { what: 'assembly of a prompt', measured: promptMs, atMost: 2, unit: ' ms' },
      { what: 'memory of long output', measured: grownMiB, atMost: 30, unit: ' MiB' },
      { what: 'longest block during long output', measured: blockMs, atMost: 20, unit: ' ms' },
    ],
  };
}

export const agentCraft: Benchmark = {
  name: 'agent-craft',
  title: 'The agent around its model: commands, rules, prompt, long output',
  run,
};
