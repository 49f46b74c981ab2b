import type { Hook, HookEvent, HookSettings } from '../../config/index.ts';
import { messageOf } from '../../lib/index.ts';
import type { RunUserCommand, UserCommandEnd } from '../tools/index.ts';
import { matches } from './matcher.ts';

/** Moment of a conversation, as hooks get it on standard input. Names after https://code.claude.com/docs/en/hooks. */
export interface HookInput {
  readonly hook_event_name: HookEvent;
  /** Thread. */
  readonly session_id: string;
  readonly turn_id: string;
  /** Directory of the conversation: the workspace, or a worktree. */
  readonly cwd: string;
  readonly workspace_path: string;
  readonly prompt?: string;
  readonly tool_name?: string;
  readonly tool_input?: unknown;
  readonly tool_response?: { readonly text: string; readonly is_error: boolean; readonly exit_code?: number };
  readonly last_message?: string;
}

/** Words of the hooks of a moment, in the order of the configuration. */
export interface HookOutcome {
  /** Standard output of hooks with exit code 0. */
  readonly context: readonly string[];
  /** Reasons of those that blocked. Not empty: blocked. */
  readonly reasons: readonly string[];
  /** Faults of the others. */
  readonly failures: readonly string[];
}

const nothing: HookOutcome = { context: [], reasons: [], failures: [] };

/** Exit code that blocks. */
const blocks = 2;

/** Programs of the user that run at moments of a conversation. */
export class Hooks {
  readonly #settings: HookSettings;
  readonly #run: RunUserCommand;

  constructor(settings: HookSettings, run: RunUserCommand) {
    this.#settings = settings;
    this.#run = run;
  }

  has(event: HookEvent): boolean {
    return this.#settings[event].length > 0;
  }

  /** Runs all hooks of a moment that are for its tool, at once. Rejects with the reason of `signal` when it aborts. */
  async run(input: HookInput, signal: AbortSignal): Promise<HookOutcome> {
    const { hook_event_name: event, tool_name: tool, cwd } = input;
    const meant = this.#settings[event].filter(({ Matcher }) => tool === undefined || matches(Matcher, tool));
    if (meant.length === 0) return nothing;
    const stdin = `${JSON.stringify(input)}\n`;
    const ends = await Promise.all(
      meant.map(async (hook): Promise<HookOutcome> => {
        try {
          const { Command, TimeoutMs } = hook;
          return outcomeOf(hook, await this.#run({ command: Command, cwd, stdin, timeoutMs: TimeoutMs, signal }));
        } catch (error) {
          return { ...nothing, failures: [`${nameOf(hook)} could not be started: ${messageOf(error)}`] };
        }
      }),
    );
    signal.throwIfAborted();
    return {
      context: ends.flatMap(({ context }) => context),
      reasons: ends.flatMap(({ reasons }) => reasons),
      failures: ends.flatMap(({ failures }) => failures),
    };
  }
}

function outcomeOf(hook: Hook, { cause, exitCode, stdout, stderr }: UserCommandEnd): HookOutcome {
  if (cause === 'timedOut') return { ...nothing, failures: [`${nameOf(hook)} was ended after ${hook.TimeoutMs} ms`] };
  if (exitCode === 0) return { ...nothing, context: [stdout.trim()].filter(Boolean) };
  if (exitCode === blocks)
    return { ...nothing, reasons: [stderr.trim() || `${nameOf(hook)} blocked it without a reason`] };
  const [line = ''] = stderr.trim().split('\n');
  const end = exitCode === null ? 'was ended by a signal' : `ended with exit code ${exitCode}`;
  return { ...nothing, failures: [`${nameOf(hook)} ${end}, which does not block${line && `: ${line.slice(0, 300)}`}`] };
}

const longestName = 80;

function nameOf({ Command }: Hook): string {
  const [line = ''] = Command.split('\n');
  return `The hook “${line.length > longestName ? `${line.slice(0, longestName)}…` : line}”`;
}
