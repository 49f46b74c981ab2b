/**
 * Work of the agent around its model, in a process of its own: `craft.ts DIRECTORY SAMPLES MIB`. Commands in a sandbox and bare, a
 * command with so many MiB of output, decisions of rules, assembly of a prompt. Prints one JSON line.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import {
  createBuiltinTools,
  OutputFiles,
  placeRules,
  promptParts,
  RuleBook,
  Sandboxes,
  type Tool,
  type ToolContext,
} from '../../src/agent/index.ts';
import { Config } from '../../src/config/schema.ts';

const [base = '', samples = '50', mebibytes = '100'] = process.argv.slice(2);
const count = Number(samples);
const workspacePath = join(base, 'work');
const home = join(base, 'home');
for (const directory of [workspacePath, home]) mkdirSync(directory, { recursive: true });
const sandboxes = new Sandboxes(process.env);
const outputs = new OutputFiles(join(home, 'outputs'));

function execOf(sandbox: 'off' | 'required'): Tool {
  const tools = createBuiltinTools({
    tools: v.parse(Config, { Tools: { Shell: { Sandbox: sandbox } } }).Tools,
    ...{ blockedPaths: [], home, environment: process.env, passEnvironment: [], secrets: [], sandboxes, outputs },
  });
  const exec = tools.find(({ name }) => name === 'Exec');
  if (!exec) throw new Error('there is no tool Exec');
  return exec;
}

const context: ToolContext = {
  ...{ workspacePath, threadId: 'thread_bench', turnId: 'turn_001', callId: 'call' },
  signal: new AbortController().signal,
  onOutput: () => undefined,
  isApproved: () => true,
  spawnSubagent: () => Promise.reject(new Error('no sub-agent here')),
};

async function run(exec: Tool, command: string): Promise<void> {
  const parsed = exec.parse({ command, timeoutMs: 600_000 });
  if (!parsed.ok) throw new Error(parsed.error);
  const { isError, text } = await exec.run(parsed.args, context);
  if (isError) throw new Error(text);
}

async function timed(work: () => unknown): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

/** Milliseconds of one `true` each, in turn. */
async function commands(): Promise<{ sandboxed: number[]; bare: number[] }> {
  const [inRoom, bare] = [execOf('required'), execOf('off')];
  const found = { sandboxed: [] as number[], bare: [] as number[] };
  for (const exec of [inRoom, bare]) await run(exec, 'true');
  for (let index = 0; index < count; index += 1) {
    found.sandboxed.push(await timed(() => run(inRoom, 'true')));
    found.bare.push(await timed(() => run(bare, 'true')));
  }
  return found;
}

const rssMiB = (): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? Number.NaN) / 1024;

/** Growth of memory and longest block of the event loop while a command prints. */
async function longOutput(): Promise<{ grownMiB: number; blockMs: number; seconds: number }> {
  const exec = execOf('required');
  const line = 'The build has compiled one more file of the project, and says so in a line as long as this one.';
  const print = (mib: number) => `yes '${line}' | head -c ${mib * 1024 * 1024}`;
  // Buffers and compiled code are there before.
  await run(exec, print(2));
  const before = rssMiB();
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, rssMiB());
  }, 20);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const ms = await timed(() => run(exec, print(Number(mebibytes))));
  delay.disable();
  clearInterval(watch);
  return { grownMiB: most - before, blockMs: delay.max / 1e6, seconds: ms / 1000 };
}

const someCommands = [
  'npm test',
  'cat src/a.ts | head -n 20',
  'git status && git diff --stat',
  'cd packages/api && npm run build -- --watch=false',
  'rm -rf build; make -j8 2>&1 | tail -n 40',
  `python3 - <<'EOF'\nprint(1)\nEOF`,
];

/** Milliseconds of a decision about a command, with fifty rules. */
async function decisions(): Promise<number[]> {
  const configured = Array.from({ length: 50 }, (_, index) => ({
    ...{ Tool: 'Exec', Prefix: `program-${index} run`, Decision: 'allow' as const },
  }));
  const places = placeRules({ blockedPaths: [], home, environment: process.env });
  const rules = new RuleBook({ configured, stateDirectory: home, places });
  const exec = execOf('off');
  const decide = async (command: string) => {
    const parsed = exec.parse({ command });
    if (parsed.ok) await rules.judge(exec, parsed.args, { workspacePath });
  };
  // The parser is loaded with the first command.
  for (let warm = 0; warm < 50; warm += 1) for (const command of someCommands) await decide(command);
  const found: number[] = [];
  for (let index = 0; index < count * 20; index += 1)
    found.push(await timed(() => decide(someCommands[index % someCommands.length] ?? '')));
  return found;
}

/** Milliseconds of the assembly of a system prompt with 32 KiB of instructions. */
async function prompts(): Promise<number[]> {
  const input = {
    workspacePath,
    briefing: {
      day: '2026-11-24',
      branch: 'main',
      instructions: [{ path: 'AGENTS.md', text: 'Use tabs.\n'.repeat(3_276), isCut: false }],
    },
    tools: [
      'ReadFile',
      'WriteFile',
      'EditFile',
      'GrepFiles',
      'FindFiles',
      'Exec',
      'ExecOutput',
      'UpdatePlan',
      'SpawnSubagent',
    ],
    policy: 'default' as const,
    commands: 'Commands run in a sandbox.',
    additions: ['Answer in German.'],
  };
  const assemble = () =>
    promptParts(input)
      .map(({ text }) => text)
      .join('\n\n');
  for (let warm = 0; warm < 100; warm += 1) assemble();
  const found: number[] = [];
  for (let index = 0; index < count; index += 1) found.push(await timed(assemble));
  return found;
}

const result = {
  commands: await commands(),
  output: await longOutput(),
  decisionsMs: await decisions(),
  promptsMs: await prompts(),
};
// Timers of the last command run out.
await sleep(10);
await sandboxes.close();
console.log(JSON.stringify(result));
