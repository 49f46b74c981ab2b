import { randomUUID } from 'node:crypto';
import type * as v from 'valibot';
import { DelegateCommandError, type DelegateCommands, type DelegatedReport } from '../agent/index.ts';
import { plainText, shellWord } from '../lib/index.ts';
import { defaults } from '../protocol/index.ts';
import { AboutTerminal, CreateTerminal, invalidParams, shapedAs } from './messages.ts';
import { OutputEnd } from './output-end.ts';
import { plainCommand } from './plain-command.ts';

/** Code for invalid parameters; not -32000, which agents take for a request to log in. */

/** Commands that a session may run, each once and for a while: agents ask first, and then have us run them. */
export class CommandGrants {
  readonly #of = new Map<string, { readonly callId: string; readonly until: number }>();
  readonly #now: () => number;

  /** @param now milliseconds on a clock that never goes back */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** @param callId allowed call of the agent */
  add(command: string, callId: string): void {
    for (const [each, { until }] of this.#of) if (until <= this.#now()) this.#of.delete(each);
    this.#of.set(plainCommand(command), { callId, until: this.#now() + defaults.externalAgent.grantMs });
  }

  /** Uses up a grant. @returns the allowed call; undefined: none */
  take(command: string): string | undefined {
    const key = plainCommand(command);
    const grant = this.#of.get(key);
    this.#of.delete(key);
    return grant && grant.until > this.#now() ? grant.callId : undefined;
  }
}

export interface TerminalServiceOptions {
  readonly agent: string;
  readonly workspacePath: string;
  readonly threadId: string;
  readonly commands: DelegateCommands;
  readonly report: DelegatedReport;
  /** Command grants of the session. */
  readonly grants: CommandGrants;
  /** Aborts with the turn: an interrupt ends its commands. */
  readonly signal: AbortSignal;
}

interface ExitStatus {
  readonly exitCode: number | null;
  readonly signal: string | null;
}

interface Terminal {
  readonly output: OutputEnd;
  readonly killing: AbortController;
  /** Never rejects. */
  readonly ended: Promise<ExitStatus>;
  exitStatus: ExitStatus | undefined;
}

/** `terminal/*` for one prompt: runs commands like our own tools, by our rules and approvals. They end with the prompt. */
export class TerminalService {
  readonly #options: TerminalServiceOptions;
  readonly #ended = new AbortController();
  readonly #terminals = new Map<string, Terminal>();
  #asking = 0;

  constructor(options: TerminalServiceOptions) {
    this.#options = options;
  }

  /** @returns undefined: another method. @throws JsonRpcError */
  request(method: string, params: unknown, withdrawn: AbortSignal): Promise<unknown> | undefined {
    switch (method) {
      case 'terminal/create':
        return this.#create(shapedAs(CreateTerminal, params), withdrawn);
      case 'terminal/output':
        return Promise.resolve(this.#output(this.#of(params)));
      case 'terminal/wait_for_exit':
        return this.#of(params).ended;
      case 'terminal/kill':
        return this.#kill(this.#of(params));
      case 'terminal/release':
        return this.#release(shapedAs(AboutTerminal, params).terminalId);
      default:
        return undefined;
    }
  }

  /**
   * Called before the question, as the agent may change the call while people think.
   *
   * @returns a function that grants the command
   */
  prepareGrant(command: string | undefined, callId: string): () => void {
    return () => {
      if (command !== undefined) this.#options.grants.add(command, callId);
    };
  }

  /** Resolves when no command runs any more. */
  async end(): Promise<void> {
    this.#ended.abort();
    await Promise.all([...this.#terminals.values()].map(({ ended }) => ended));
  }

  async #create(
    wanted: v.InferOutput<typeof CreateTerminal>,
    withdrawn: AbortSignal,
  ): Promise<{ readonly terminalId: string }> {
    const { workspacePath, commands, grants } = this.#options;
    // An agent that asks faster than it is answered is refused, and so is one that releases nothing.
    if (this.#terminals.size + this.#asking >= defaults.externalAgent.terminals) refuse('Too many terminals are open.');
    this.#asking += 1;
    try {
      const directory = await commands.locate(workspacePath, wanted.cwd ?? workspacePath);
      this.#mustRun();
      const command = commandLineOf(wanted);
      // A person has seen the command, for the workspace itself.
      const granted = directory === workspacePath ? grants.take(command) : undefined;
      const callId = granted ?? `terminal_${randomUUID()}`;
      await this.#ask({ callId, command, directory, isGranted: granted !== undefined, withdrawn });
      return { terminalId: this.#start({ callId, command, directory, isOwn: granted === undefined }, wanted) };
    } catch (error) {
      if (error instanceof DelegateCommandError) refuse(error.message);
      throw error;
    } finally {
      this.#asking -= 1;
    }
  }

  async #ask(order: {
    readonly callId: string;
    readonly command: string;
    readonly directory: string;
    readonly isGranted: boolean;
    readonly withdrawn: AbortSignal;
  }): Promise<void> {
    const { agent, report } = this.#options;
    const { callId, command, directory, isGranted, withdrawn } = order;
    const call = { callId, tool: 'Exec', arguments: { command, workingDir: directory }, command };
    const need = {
      ...({ kind: 'shell', operation: 'run', target: command, workingDirectory: directory } as const),
      scopeKey: `agent:${agent}:run:${JSON.stringify([directory, command])}`,
      covers: `exactly this command in ${directory}`,
      reason: `${agent} asks.`,
    };
    // A granted command belongs to a call that is shown already.
    if (!isGranted) report.begin(call);
    const decision = await report.ask({ call, need, isOurs: true, isGranted }, withdrawn);
    const isRefused = decision === 'decline' || decision === 'cancel';
    if (isRefused || this.#isOver || withdrawn.aborted) {
      const outcome = isRefused && !withdrawn.aborted ? 'declined' : 'cancelled';
      if (!isGranted) report.end(callId, { outcome, text: '' });
      this.#mustRun();
      refuse('The command must not be run.');
    }
  }

  #start(
    order: { readonly callId: string; readonly command: string; readonly directory: string; readonly isOwn: boolean },
    { outputByteLimit }: v.InferOutput<typeof CreateTerminal>,
  ): string {
    const { workspacePath, threadId, commands, report, signal } = this.#options;
    const { callId, command, directory, isOwn } = order;
    const output = new OutputEnd(Math.min(outputByteLimit ?? Number.POSITIVE_INFINITY, terminalBytes));
    const killing = new AbortController();
    const run = commands.run({
      ...{ workspacePath, threadId, directory, command },
      signal: AbortSignal.any([signal, this.#ended.signal, killing.signal]),
      onText: (text) => {
        output.add(text);
        report.output(callId, text);
      },
    });
    const ended = run.then(
      ({ exitCode, signal: name }) => ({ exitCode, signal: name }),
      (error: unknown) => {
        output.add(error instanceof Error ? error.message : 'The command could not be run.');
        return { exitCode: null, signal: null };
      },
    );
    const terminal: Terminal = { output, killing, ended, exitStatus: undefined };
    const terminalId = `terminal_${randomUUID()}`;
    this.#terminals.set(terminalId, terminal);
    void ended.then((exitStatus) => {
      terminal.exitStatus = exitStatus;
      const { exitCode } = exitStatus;
      const outcome = killing.signal.aborted ? 'cancelled' : exitCode === 0 ? 'completed' : 'failed';
      if (isOwn) report.end(callId, { outcome, text: output.text, exitCode: exitCode ?? undefined });
    });
    return terminalId;
  }

  #output({ output, exitStatus }: Terminal) {
    return { output: output.text, truncated: output.isCut, ...(exitStatus && { exitStatus }) };
  }

  async #kill({ killing, ended }: Terminal): Promise<Record<string, never>> {
    killing.abort();
    await ended;
    return {};
  }

  async #release(terminalId: string): Promise<Record<string, never>> {
    const terminal = this.#of({ terminalId });
    await this.#kill(terminal);
    this.#terminals.delete(terminalId);
    return {};
  }

  #of(params: unknown): Terminal {
    const { terminalId } = shapedAs(AboutTerminal, params);
    return this.#terminals.get(terminalId) ?? refuse('There is no such terminal.');
  }

  get #isOver(): boolean {
    return this.#ended.signal.aborted || this.#options.signal.aborted;
  }

  #mustRun(): void {
    if (this.#isOver) refuse('The turn has ended.');
  }
}

const { terminalBytes } = defaults.externalAgent;

/** One line for a shell, so that people and rules see all of it. A command without arguments is already one. */
function commandLineOf({ command, args, env }: v.InferOutput<typeof CreateTerminal>): string {
  const line = args.length === 0 ? command : [command, ...args].map(shellWord).join(' ');
  return [...env.map(({ name, value }) => `export ${name}=${shellWord(value)}`), line].join('; ');
}

function refuse(problem: string): never {
  throw invalidParams(plainText(problem).slice(0, defaults.externalAgent.errorChars));
}
