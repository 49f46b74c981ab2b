import {
  AppServerConnectionError,
  listCheckpoints,
  mergeFork,
  type RestoredAnswer,
  startThread,
  turnDiff,
} from '../../client/index.ts';
import { count } from '../../lib/index.ts';
import { toolChainEnvironment } from '../../supervise/index.ts';
import { declineUnattended } from '../approvals.ts';
import type { CommandContext } from '../command.ts';
import { promptOf } from '../conversation.ts';
import { CliError, usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { LastingServer } from '../lasting-server.ts';
import { Patience } from '../patience.ts';
import { Attempt, type AttemptResult } from '../race/attempt.ts';
import { checkOf, type RunCheck } from '../race/check.ts';
import { type AttemptChoice, checkAgents, choicesOf } from '../race/options.ts';
import { countUnfinished, namePrefix, prune } from '../race/prune.ts';
import { columns, inLine } from '../render.ts';
import { commandIn, linesOf, refusalOf, restoreArguments } from '../restores.ts';

/** `oratorio race` */
export async function run(context: CommandContext): Promise<number> {
  const { output, options } = context;
  const plan = options['prune'] === true ? undefined : await planOf(context);
  const server = await LastingServer.reach(context, declineUnattended(output), new Patience(context));
  try {
    if (!plan) return await prune(context, server.present, server.workspacePath);
    return await new Race(context, server, plan).run();
  } finally {
    server.close();
  }
}

interface Plan {
  readonly prompt: string;
  readonly check: string;
  readonly choices: readonly AttemptChoice[];
}

/** Prompt, check and choices of the user. @throws CliError usage, before anything is started */
async function planOf(context: CommandContext): Promise<Plan> {
  const { check } = context.options;
  const choices = choicesOf(context);
  const prompt = await promptOf(context);
  if (prompt === undefined || typeof check !== 'string') throw usageError('race needs a prompt and --check.', 'race');
  return { prompt, check, choices };
}

class Race {
  readonly #context: CommandContext;
  readonly #server: LastingServer;
  readonly #plan: Plan;
  /** The first attempt whose check has passed. */
  #winner: string | undefined;
  /** Error that ends the race, such as an agent server that does not return. */
  #fatal: { readonly error: unknown } | undefined;

  constructor(context: CommandContext, server: LastingServer, plan: Plan) {
    this.#context = context;
    this.#server = server;
    this.#plan = plan;
  }

  async run(): Promise<number> {
    const { output, signal, env } = this.#context;
    const { workspacePath } = this.#server;
    const runCheck = await checkOf(this.#context, workspacePath, this.#plan.check);
    const usual = await this.#server.repeated((server) => checkAgents(this.#context, server, this.#plan.choices));
    const unfinished = await this.#server.repeated((server) => countUnfinished(server, this.#context));
    if (unfinished > 0) {
      const verb = unfinished === 1 ? 'has' : 'have';
      output.note(
        `${count(unfinished, 'attempt')} of an earlier race ${verb} no result: the race has ended, or still runs.`,
      );
      output.note(nextSteps(this.#context));
    }
    const displayName = `${namePrefix}${this.#plan.prompt.slice(0, 60)}`;
    const config = { environment: toolChainEnvironment(env) };
    const base = { workspacePath, config, displayName, signal };
    const threadId = await this.#server.repeated((server) => startThread(server, base));
    const found = await this.#attempts(threadId, usual, runCheck);
    if (this.#fatal) throw this.#cutBy(this.#fatal.error);
    signal.throwIfAborted();
    const applied = this.#winner === undefined ? undefined : await this.#apply(threadId, this.#winner, found);
    if (output.json) output.document({ threadId, attempts: found, applied: applied ?? null });
    this.#show(found);
    if (applied) {
      output.line(`Attempt ${found.find(({ threadId: id }) => id === this.#winner)?.number} is applied.`);
      for (const line of linesOf(applied, commandIn(this.#context, ...restoreArguments(threadId, applied))))
        output.line(line);
    } else output.line('No attempt passed the check; nothing was applied.');
    output.line(`The attempts stay until: ${commandIn(this.#context, 'race', '--prune')}`);
    return applied ? exitCodes.ok.code : exitCodes.failure.code;
  }

  /** @param usual agent of attempts without a named agent */
  #attempts(originalId: string, usual: string, runCheck: RunCheck): Promise<AttemptResult[]> {
    const { prompt, check, choices } = this.#plan;
    const { options, signal } = this.#context;
    let copied: Promise<unknown> = Promise.resolve();
    const attempts = choices.map(
      (choice, index) =>
        new Attempt({
          ...{ server: this.#server, originalId, prompt, check, runCheck, signal },
          number: index + 1,
          choice: { ...choice, agent: choice.agent || usual },
          isAgentNamed: choice.agent !== '',
          displayName: `${namePrefix}attempt ${index + 1}, ${prompt.slice(0, 50)}`,
          isUnattended: options['yes'] === true,
          inOrder(copy) {
            const next = copied.then(copy);
            copied = next.catch(() => undefined);
            return next;
          },
          onFatal: (error) => {
            this.#fatal ??= { error };
            for (const each of attempts) each.decided();
          },
        }),
    );
    return Promise.all(
      attempts.map((attempt) =>
        attempt.run(() => {
          if (this.#winner !== undefined) return;
          this.#winner = attempt.threadId ?? undefined;
          // Stopped attempts cost nothing more.
          for (const each of attempts) each.decided();
        }),
      ),
    );
  }

  /** Adds the next steps when the agent server does not return: the turns continue without the race. */
  #cutBy(error: unknown): unknown {
    if (!(error instanceof CliError || error instanceof AppServerConnectionError)) return error;
    const { message, code } = error;
    const hint = `The turns of the attempts continue with the next agent server, without checks. ${nextSteps(this.#context)}`;
    return new CliError('failure', message, hint, code);
  }

  /** @throws CliError with the conflicts; the attempts are shown before */
  async #apply(originalId: string, winner: string, found: readonly AttemptResult[]): Promise<RestoredAnswer> {
    const { signal } = this.#context;
    try {
      return await this.#server.once(
        (server) => mergeFork(server, winner, { signal }),
        async (server) => {
          // An agent server that ended in the merge completes the merge at its next start, or had not begun it.
          const merged = (await listCheckpoints(server, originalId, { signal })).find(({ kind }) => kind === 'restore');
          if (!merged) return undefined;
          const { files } = await turnDiff(server, winner, { format: 'summary', signal });
          const restored = files.map(({ path }) => path);
          return { ...noFindings, restoreId: merged.turnId, restored, restoredTotal: restored.length };
        },
      );
    } catch (error) {
      this.#show(found);
      throw refusalOf(error, commandIn(this.#context, 'merge', winner, '--force'), 'merged') ?? error;
    }
  }

  #show(attempts: readonly AttemptResult[]): void {
    const { output } = this.#context;
    const rows = attempts.map((each) => [
      ...[String(each.number), inLine(each.agent), each.model, each.effort, turnWords[each.status]],
      each.failure || each.status === 'stopped' ? '' : each.hasPassed ? 'passed' : 'not passed',
      each.costUsd === null ? '' : `$${each.costUsd.toFixed(4)}`,
      `${count(each.files, 'file')}, +${each.additions} -${each.deletions}`,
      each.threadId === this.#winner ? `${each.directory} (passed first)` : (each.directory ?? ''),
    ]);
    const heading = ['NO', 'AGENT', 'MODEL', 'EFFORT', 'TURN', 'CHECK', 'COST', 'CHANGES', 'DIRECTORY'];
    for (const row of columns(heading, rows, output)) output.line(row);
    for (const { number, failure } of attempts) {
      if (failure) output.line(`Attempt ${number} has failed (${failure.code}): ${inLine(failure.message)}`);
    }
  }
}

/** Next steps for attempts without a result, whose race has ended. */
const nextSteps = (context: CommandContext): string =>
  `Check an attempt in its directory (${commandIn(context, 'list')}), apply it with "oratorio merge THREAD", or delete all: ${commandIn(context, 'race', '--prune')}`;

/** Empty findings of a merge that the agent server completed at its next start: they are not stored. */
const noFindings = {
  ...{ kept: [], keptTotal: 0, changedMeanwhile: [], changedMeanwhileTotal: 0, conflicts: [], conflictsTotal: 0 },
  ...{ notCovered: [], notCoveredTotal: 0, runningProcesses: [] },
} as const satisfies Omit<RestoredAnswer, 'restoreId' | 'restored' | 'restoredTotal'>;

const turnWords: Readonly<Record<AttemptResult['status'], string>> = {
  completed: 'completed',
  stopped: 'stopped',
  failed: 'failed',
  notStarted: 'not started',
};
