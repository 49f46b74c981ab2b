/** `npm run lab`: what harnesses make of small repositories with a failing test, with a scripted model or a real one. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { isBuilt } from '../../scripts/stamp.mjs';
import { root, run } from '../../scripts/toolchain.mjs';
import { renderTable } from '../report.ts';
import { defaultLimitMs, pickHarnesses, pickTasks, runLab, tasksTable, totalsTable } from './lab.ts';
import type { Outcome } from './run.ts';
import type { Forward } from './upstream.ts';

/** OpenAI-compatible endpoints by provider, with the variable that holds the key. */
const providers: Readonly<Record<string, { endPoint: string; variable: string }>> = {
  openai: { endPoint: 'https://api.openai.com/v1', variable: 'OPENAI_API_KEY' },
  anthropic: { endPoint: 'https://api.anthropic.com/v1', variable: 'ANTHROPIC_API_KEY' },
  google: { endPoint: 'https://generativelanguage.googleapis.com/v1beta/openai', variable: 'GEMINI_API_KEY' },
  openrouter: { endPoint: 'https://openrouter.ai/api/v1', variable: 'OPENROUTER_API_KEY' },
};

const help = `npm run lab -- [options]

  --harness NAMES    oratorio, pi, opencode, qwen-code; several with commas. Default: all
  --task NAMES       repositories or languages (typescript, python, c, shell). Default: all
  --provider NAME    ask a real model of ${Object.keys(providers).join(', ')}; needs --model
  --endpoint URL     … or of another OpenAI-compatible endpoint (key in LAB_API_KEY)
  --model NAME       the real model
  --limit SECONDS    end a run after so long. Default: ${defaultLimitMs / 1000}
  --keep             keep the directories of the runs and print their names
  --json             print outcomes as JSON lines in place of tables
  --list             list the repositories

Without a provider a scripted model answers, the same for each harness. The key of a provider is read from its variable, as
OPENAI_API_KEY. Exit code 1: oratorio did not solve all of them.`;

const { values } = parseArgs({
  options: {
    harness: { type: 'string', default: '' },
    task: { type: 'string', default: '' },
    provider: { type: 'string' },
    endpoint: { type: 'string' },
    model: { type: 'string' },
    limit: { type: 'string', default: String(defaultLimitMs / 1000) },
    keep: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const names = (list: string): string[] => list.split(',').filter((name) => name !== '');

/** @throws when a real model is asked for incompletely */
function realModel(): Forward | undefined {
  const { provider, endpoint, model } = values;
  if (provider === undefined && endpoint === undefined) {
    if (model !== undefined) throw new Error('--model needs --provider or --endpoint.');
    return undefined;
  }
  if (model === undefined) throw new Error('A real model needs --model.');
  const known = endpoint === undefined ? providers[provider ?? ''] : { endPoint: endpoint, variable: 'LAB_API_KEY' };
  if (known === undefined)
    throw new Error(`There is no provider ${provider}. Known: ${Object.keys(providers).join(', ')}.`);
  const apiKey = process.env[known.variable];
  if (apiKey === undefined || apiKey === '') throw new Error(`No key: set ${known.variable}.`);
  return { endPoint: known.endPoint, apiKey, model };
}

function show({ harness, task, isSolved, reason, requests, bytes, ms }: Outcome): void {
  const figures = `${requests} requests, ${Math.round(bytes / 1024)} KiB, ${(ms / 1000).toFixed(1)} s`;
  console.error(
    `${isSolved ? '✔' : '✖'} ${task.padEnd(22)} ${harness.padEnd(10)} ${figures}${reason === undefined ? '' : `: ${reason}`}`,
  );
}

async function main(): Promise<number> {
  if (values.help) {
    console.log(help);
    return 0;
  }
  const tasks = pickTasks(names(values.task));
  if (values.list) {
    for (const { name, language, probes } of tasks) console.log(`${name.padEnd(24)} ${language.padEnd(12)} ${probes}`);
    return 0;
  }
  const harnesses = pickHarnesses(names(values.harness));
  const real = realModel();
  const limitMs = Number(values.limit) * 1000;
  if (!(limitMs > 0)) throw new Error(`--limit is a number of seconds, not ${values.limit}.`);
  if (harnesses.some(({ name }) => name === 'oratorio') && !isBuilt()) {
    console.error('Building …');
    run(process.execPath, [join(root, 'scripts', 'node22.mjs'), join(root, 'scripts', 'build.ts')]);
  }
  const onOutcome = (outcome: Outcome) => {
    if (values.json) console.log(JSON.stringify(outcome));
    else show(outcome);
  };
  const outcomes = await runLab({ harnesses, tasks, onOutcome, limitMs, keep: values.keep, ...(real && { real }) });
  if (!values.json)
    console.log(`\n${[tasksTable, totalsTable].map((table) => renderTable(table(outcomes, harnesses))).join('\n\n')}`);
  return outcomes.every(({ harness, isSolved }) => isSolved || harness !== 'oratorio') ? 0 : 1;
}

process.exitCode = await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  return 2;
});
