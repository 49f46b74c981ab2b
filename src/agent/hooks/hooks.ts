import {
  changedFiles,
  type Hook,
  type HookEvent,
  type HookSettings,
  type NamedFiles,
  namedFiles,
  startedFileRemedy,
} from '../../config/index.ts';
import { messageOf, visible } from '../../lib/index.ts';
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
  readonly #workspacePath: string;
  /** Files of the workspace that a command names, with their contents at the start. */
  readonly #files: ReadonlyMap<string, NamedFiles>;

  /** @param workspacePath its files that hooks name must not change: hooks run outside of the sandbox */
  constructor(settings: HookSettings, run: RunUserCommand, workspacePath: string) {
    this.#settings = settings;
    this.#run = run;
    this.#workspacePath = workspacePath;
    const commands = Object.values(settings).flatMap((hooks) => hooks.map(({ Command }) => Command));
    this.#files = new Map(commands.map((command) => [command, namedFiles(workspacePath, command)]));
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
          const changed = this.#changedFile(Command, cwd);
          if (changed !== undefined) return refusedBecause(event, hook, changed);
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

  /** Finds a changed file of a hook. In a worktree the hook would run the worktree's file, which must be the same. */
  #changedFile(command: string, cwd: string): string | undefined {
    const before = this.#files.get(command) ?? new Map();
    return [this.#workspacePath, cwd].flatMap((place) => changedFiles(before, namedFiles(place, command)))[0];
  }
}

/** A hook that guards prompts and calls blocks them: another program might let them pass. */
function refusedBecause(event: HookEvent, hook: Hook, file: string): HookOutcome {
  const what = `${visible(file)} of the workspace has changed since the agent server started`;
  const text = `${nameOf(hook)} was not run, because ${what}. ${startedFileRemedy}`;
  const guards = event === 'UserPromptSubmit' || event === 'PreToolUse';
  return guards ? { ...nothing, reasons: [text] } : { ...nothing, failures: [text] };
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
