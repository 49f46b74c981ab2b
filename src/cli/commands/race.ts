import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { promisify } from 'node:util';
import * as v from 'valibot';
import {
  type AppServerClient,
  forkThread,
  mergeFork,
  type RestoredAnswer,
  type RunningTurn,
  startThread,
  startTurn,
  turnDiff,
} from '../../client/index.ts';
import { directoryName } from '../../config/index.ts';
import { count } from '../../lib/index.ts';
import { type RaceAttempt, reasoningEfforts } from '../../protocol/index.ts';
import { toolChainEnvironment } from '../../supervise/index.ts';
import { declineUnattended } from '../approvals.ts';
import type { CommandContext } from '../command.ts';
import { answerOf, promptOf, reachServer } from '../conversation.ts';
import { usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { Patience } from '../patience.ts';
import { columns, inLine } from '../render.ts';
import { commandIn, linesOf, refusalOf, takeBack } from '../restores.ts';

/** One attempt of a race, as it ended. */
interface Attempt {
  readonly number: number;
  readonly threadId: string;
  readonly directory: string;
  readonly model: string;
  readonly effort: string;
  readonly status: string;
  readonly hasPassed: boolean;
  readonly costUsd: number | null;
  readonly files: number;
  readonly additions: number;
  readonly deletions: number;
}

const namePrefix = 'race: ';
const maxAttempts = 8;
const Effort = v.picklist(reasoningEfforts);
const Usage = v.object({ tokenUsage: v.optional(v.looseObject({ costUsd: v.optional(v.number()) })) });
const Threads = v.looseObject({
  data: v.array(
    v.looseObject({
      id: v.string(),
      displayName: v.optional(v.string(), ''),
      config: v.optional(v.looseObject({ workspaceOverride: v.optional(v.string()) }), {}),
    }),
  ),
});

/** `oratorio race` */
export async function run(context: CommandContext): Promise<number> {
  const { output, options } = context;
  const { record, server } = await reachServer(context, declineUnattended(output), new Patience(context));
  const { canonicalWorkspacePath: workspacePath } = record;
  try {
    if (options['prune'] === true) return await prune(context, server, workspacePath);
    return await new Race(context, server, workspacePath).run();
  } finally {
    server.close();
  }
}

class Race {
  readonly #context: CommandContext;
  readonly #server: AppServerClient;
  readonly #workspacePath: string;
  readonly #running = new Set<RunningTurn>();
  /** The first attempt whose check has passed. */
  #winner: string | undefined;

  constructor(context: CommandContext, server: AppServerClient, workspacePath: string) {
    this.#context = context;
    this.#server = server;
    this.#workspacePath = workspacePath;
  }

  async run(): Promise<number> {
    const { options, output, signal, env } = this.#context;
    const prompt = await promptOf(this.#context);
    const { check } = options;
    if (prompt === undefined || typeof check !== 'string') throw usageError('race needs a prompt and --check.', 'race');
    const attempts = Number(options['attempts'] ?? 3);
    if (!Number.isSafeInteger(attempts) || attempts < 1 || attempts > maxAttempts) {
      throw usageError(`--attempts must be a whole number from 1 to ${maxAttempts}.`, 'race');
    }
    const models = listOf(options['model']);
    const efforts = listOf(options['effort']);
    const unknown = efforts.find((effort) => !v.is(Effort, effort));
    if (unknown !== undefined) {
      throw usageError(`--effort must name ${reasoningEfforts.join(', ')}, not ${inLine(unknown)}.`, 'race');
    }
    const displayName = `${namePrefix}${prompt.slice(0, 60)}`;
    const config = { environment: toolChainEnvironment(env) };
    const base = { workspacePath: this.#workspacePath, config, displayName, signal };
    const threadId = await startThread(this.#server, base);
    const found: Attempt[] = [];
    // One after the other: each copies all files.
    const forks: { readonly threadId: string; readonly directory: string }[] = [];
    for (let number = 1; number <= attempts; number += 1) {
      const name = `${namePrefix}attempt ${number}, ${prompt.slice(0, 50)}`;
      forks.push(await forkThread(this.#server, threadId, { worktree: true, displayName: name, signal }));
    }
    await Promise.all(
      forks.map(async (fork, index) => {
        const [model, effort] = [models, efforts].map((each) => each[index % Math.max(1, each.length)] ?? '');
        found.push(
          await this.#attempt({ ...fork, number: index + 1, model: model ?? '', effort: effort ?? '', prompt, check }),
        );
      }),
    );
    found.sort((a, b) => a.number - b.number);
    const applied = this.#winner === undefined ? undefined : await this.#apply(this.#winner, found);
    if (output.json) output.document({ threadId, attempts: found, applied: applied ?? null });
    for (const row of this.#table(found)) output.line(row);
    if (applied) {
      for (const line of linesOf(applied, commandIn(this.#context, ...takeBack(threadId, applied)))) output.line(line);
    } else output.line('No attempt passed the check; nothing was applied.');
    output.line('The attempts stay until: oratorio race --prune');
    return applied ? exitCodes.ok.code : exitCodes.failure.code;
  }

  /** @throws CliError with the conflicts; the attempts are shown before */
  async #apply(winner: string, found: readonly Attempt[]): Promise<RestoredAnswer> {
    try {
      return await mergeFork(this.#server, winner, { signal: this.#context.signal });
    } catch (error) {
      for (const row of this.#table(found)) this.#context.output.line(row);
      throw refusalOf(error, commandIn(this.#context, 'merge', winner, '--force'), 'merged') ?? error;
    }
  }

  async #attempt(entry: {
    readonly threadId: string;
    readonly directory: string;
    readonly number: number;
    readonly model: string;
    readonly effort: string;
    readonly prompt: string;
    readonly check: string;
  }): Promise<Attempt> {
    const { threadId, directory, number, model, effort, prompt, check } = entry;
    const { options, signal } = this.#context;
    const server = this.#server;
    const record = (state: RaceAttempt['state']) => this.#record(threadId, { number, check, state }, signal);
    const config = { ...(model !== '' && { model }), ...(effort !== '' && { effort }) };
    await server.request('thread/config/update', { threadId, config }, { signal });
    await record('working');
    const asked = options['yes'] === true ? ({ approvalPolicy: 'autoApprove' } as const) : {};
    const turn = await startTurn(server, threadId, prompt, { ...asked, signal });
    this.#running.add(turn);
    const answer = await answerOf(turn, signal, () => undefined).catch((error: unknown) => error);
    this.#running.delete(turn);
    const isAnswered = typeof answer === 'object' && answer !== null && 'turn' in answer;
    const usage = v.safeParse(Usage, isAnswered ? answer.turn : {});
    const isCancelled = isAnswered && 'cancelled' in answer && answer.cancelled === true;
    const isChecked = isAnswered && !isCancelled && this.#winner === undefined;
    if (isChecked) await record('checking');
    const hasPassed = isChecked && (await passes(check, directory));
    if (hasPassed && this.#winner === undefined) {
      this.#winner = threadId;
      // Stopped attempts cost nothing more.
      for (const other of this.#running) void other.interrupt().catch(() => undefined);
    }
    await record(hasPassed ? 'passed' : isChecked || !isAnswered ? 'failed' : 'stopped');
    const { files } = await turnDiff(server, threadId, { format: 'summary', signal });
    return {
      ...{ number, threadId, directory, model, effort, hasPassed },
      status: isAnswered ? (isCancelled ? 'stopped' : 'completed') : 'failed',
      costUsd: usage.success ? (usage.output.tokenUsage?.costUsd ?? null) : null,
      files: files.length,
      additions: files.reduce((sum, { additions }) => sum + additions, 0),
      deletions: files.reduce((sum, { deletions }) => sum + deletions, 0),
    };
  }

  /** For those who watch the race on the page. */
  async #record(threadId: string, race: RaceAttempt, signal: AbortSignal): Promise<void> {
    await this.#server.request('thread/config/update', { threadId, config: { race } }, { signal });
  }

  #table(attempts: readonly Attempt[]): string[] {
    const rows = attempts.map((each) => [
      ...[String(each.number), each.model, each.effort, each.status, each.hasPassed ? 'passed' : 'not passed'],
      each.costUsd === null ? '' : `$${each.costUsd.toFixed(4)}`,
      `${count(each.files, 'file')}, +${each.additions} -${each.deletions}`,
      each.threadId === this.#winner ? `${each.directory} (passed first)` : each.directory,
    ]);
    const heading = ['NO', 'MODEL', 'EFFORT', 'TURN', 'CHECK', 'COST', 'CHANGES', 'DIRECTORY'];
    return columns(heading, rows, this.#context.output.colors);
  }
}

const listOf = (value: string | boolean | undefined): readonly string[] =>
  typeof value === 'string' ? value.split(',').map((each) => each.trim()) : [];

/** Runs the user's own command in the files of an attempt. */
async function passes(check: string, cwd: string): Promise<boolean> {
  const child = spawn('sh', ['-c', check], { cwd, stdio: 'ignore' });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code === 0;
}

/** Deletes the attempts of earlier races, with their directories. */
async function prune(
  { output, signal }: CommandContext,
  server: AppServerClient,
  workspacePath: string,
): Promise<number> {
  const { data } = v.parse(Threads, await server.request('thread/list', { includeArchived: true }, { signal }));
  const place = join(dirname(workspacePath), directoryName, 'worktrees') + sep;
  let pruned = 0;
  for (const { id, displayName, config } of data) {
    const directory = config.workspaceOverride;
    if (!displayName.startsWith(namePrefix) || directory === undefined || !directory.startsWith(place)) continue;
    await server.request('thread/delete', { threadId: id }, { signal });
    await rm(directory, { recursive: true, force: true });
    pruned += 1;
  }
  // Without a repository there is nothing to tidy.
  await promisify(execFile)('git', ['worktree', 'prune'], { cwd: workspacePath }).catch(() => undefined);
  if (output.json) output.document({ pruned });
  output.line(`Deleted ${count(pruned, 'attempt')}.`);
  return exitCodes.ok.code;
}
