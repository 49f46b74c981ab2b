/**
 * `npm run bench [-- [--quick] [name…]]`: runs the benchmarks named, or all, and prints their tables. Saves them in
 * bench/results and, after a full run, in docs/performance.md.
 */
import { parseArgs } from 'node:util';
import { agentChat } from './agent-chat.ts';
import { agentCraft } from './agent-craft.ts';
import { agentRuntime } from './agent-runtime.ts';
import { automations } from './automations.ts';
import { chatPage } from './chat-page.ts';
import { checkpoints } from './checkpoints.ts';
import { externalAgents } from './external-agents.ts';
import { gitProtection } from './git-protection.ts';
import { type Benchmark, type Context, isMet, machine, render, save, stopAll } from './harness.ts';
import { hosts } from './hosts.ts';
import { hubLifecycle } from './hub-lifecycle.ts';
import { hubRequests } from './hub-requests.ts';
import { inspection } from './inspection.ts';
import { killedTurns } from './killed-turns.ts';
import { lab } from './lab.ts';
import { models } from './models.ts';
import { page } from './page.ts';
import { pageProxy } from './page-proxy.ts';
import { publish } from './performance-page.ts';
import { places } from './places.ts';
import { responses } from './responses.ts';
import { reviewAnchors } from './review-anchors.ts';
import { reviewIntake } from './review-intake.ts';
import { reviewQueue } from './review-queue.ts';
import { reviewScheduling } from './review-scheduling.ts';
import { reviewSync } from './review-sync.ts';
import { sseFanout } from './sse-fanout.ts';
import { traces } from './traces.ts';
import { transitionToWire } from './transition-to-wire.ts';
import { turnCost } from './turn-cost.ts';

const benchmarks: readonly Benchmark[] = [
  sseFanout,
  hubRequests,
  hubLifecycle,
  places,
  hosts,
  transitionToWire,
  inspection,
  agentChat,
  responses,
  agentRuntime,
  turnCost,
  agentCraft,
  killedTurns,
  gitProtection,
  externalAgents,
  models,
  lab,
  automations,
  checkpoints,
  traces,
  page,
  chatPage,
  pageProxy,
  reviewAnchors,
  reviewIntake,
  reviewQueue,
  reviewScheduling,
  reviewSync,
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    long: { type: 'boolean', default: false },
    against: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

function help(): string {
  const names = benchmarks.map(({ name, title }) => `  ${name.padEnd(20)} ${title}`);
  return [
    'npm run bench -- [--quick] [--long] [--against DIR] [--rounds N] [name…]',
    '',
    ...names,
    '',
    'Without a name: all. --quick: one short round, results in bench/results/*.local.json. --long: the page is watched for ten minutes.',
    '--against: root of another built checkout that turn-cost and hosts compare with.',
  ].join('\n');
}

function chosen(): readonly Benchmark[] {
  const unknown = positionals.filter((name) => !benchmarks.some((benchmark) => benchmark.name === name));
  if (unknown.length > 0) throw new Error(`There is no benchmark ${unknown.join(', ')}.\n\n${help()}`);
  return positionals.length === 0 ? benchmarks : benchmarks.filter(({ name }) => positionals.includes(name));
}

async function main(): Promise<number> {
  if (values.help) {
    console.log(help());
    return 0;
  }
  const context: Context = {
    quick: values.quick,
    long: values.long,
    against: values.against,
    rounds: Number(values.rounds ?? (values.quick ? 1 : 5)),
  };
  const isPartial = context.quick || context.rounds < 5;
  let failures = 0;
  let short = 0;
  for (const benchmark of chosen()) {
    const command = ['npm run bench --', ...(context.quick ? ['--quick'] : []), benchmark.name].join(' ');
    const from = performance.now();
    try {
      const result = await benchmark.run(context);
      const text = render(benchmark, command, result);
      console.log(`${text}\n`);
      save(benchmark, command, { ...context, quick: isPartial }, result);
      if (!isPartial) publish();
      short += result.checks.filter((check) => !isMet(check)).length;
    } catch (error) {
      failures += 1;
      console.error(`✖ ${benchmark.name} failed:`, error);
    }
    await stopAll();
    console.error(`${benchmark.name}: ${((performance.now() - from) / 1000).toFixed(0)} s`);
  }
  console.log(
    failures + short === 0 ? 'Every target is met.' : `${short} targets SHORT, ${failures} benchmarks failed.`,
  );
  return failures === 0 ? 0 : 1;
}

if (machine().cores < 2) console.error('One core: server and load client share it, and absolute figures say little.');
process.exit(
  await main().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    return 2;
  }),
);
