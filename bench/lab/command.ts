/** Command line of `npm run lab`. */
import { join } from 'node:path';
import { isBuilt } from '../../scripts/stamp.mjs';
import { root, run } from '../../scripts/toolchain.mjs';
import { renderTable } from '../report.ts';
import { defaultLimitMs, runLab, tasksTable, totalsTable } from './lab.ts';
import { providers, readCommand } from './options.ts';
import type { Outcome } from './run.ts';

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

/** Streams of the command. */
export interface LabOutput {
  readonly print: (line: string) => void;
  readonly report: (line: string) => void;
}

function lineOf({ harness, task, isSolved, reason, requests, bytes, ms }: Outcome): string {
  const figures = `${requests} requests, ${Math.round(bytes / 1024)} KiB, ${(ms / 1000).toFixed(1)} s`;
  return `${isSolved ? '✔' : '✖'} ${task.padEnd(22)} ${harness.padEnd(10)} ${figures}${reason === undefined ? '' : `: ${reason}`}`;
}

/** @returns the exit code */
export async function runCommand(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  { print, report }: LabOutput,
): Promise<number> {
  const { what, tasks, harnesses, real, limitMs, keep, json } = readCommand(args, env);
  if (what === 'help') {
    print(help);
    return 0;
  }
  if (what === 'list') {
    for (const { name, language, probes } of tasks) print(`${name.padEnd(24)} ${language.padEnd(12)} ${probes}`);
    return 0;
  }
  if (harnesses.some(({ name }) => name === 'oratorio') && !isBuilt()) {
    report('Building …');
    run(process.execPath, [join(root, 'scripts', 'node22.mjs'), join(root, 'scripts', 'build.ts')]);
  }
  const onOutcome = (outcome: Outcome) => {
    if (json) print(JSON.stringify(outcome));
    else report(lineOf(outcome));
  };
  const outcomes = await runLab({ harnesses, tasks, onOutcome, limitMs, keep, ...(real && { real }) });
  if (!json)
    print(`\n${[tasksTable, totalsTable].map((table) => renderTable(table(outcomes, harnesses))).join('\n\n')}`);
  return outcomes.every(({ harness, isSolved }) => isSolved || harness !== 'oratorio') ? 0 : 1;
}
