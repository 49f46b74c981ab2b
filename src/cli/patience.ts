import type { AppServerClient, RunningTurn, SilenceOptions } from '../client/index.ts';
import type { CommandContext } from './command.ts';
import { usageError } from './errors.ts';

/** Environment variable: milliseconds after which the command gives up a silent agent server. */
const variable = 'ORATORIO_ANSWER_TIMEOUT_MS';

function deadlineOf(env: CommandContext['env']): number | undefined {
  const text = env[variable];
  if (text === undefined || text === '') return undefined;
  const deadlineMs = Number(text);
  if (Number.isInteger(deadlineMs) && deadlineMs > 0 && deadlineMs < 2 ** 31) return deadlineMs;
  throw usageError(`${variable} must be a whole number of milliseconds, not ${text}.`);
}

/** Reports an agent server that does not answer, and lets Ctrl-C end the wait for it. */
export class Patience {
  readonly options: SilenceOptions;
  #isSilent = false;
  #interrupted: AppServerClient | undefined;
  #hasLeft = false;

  /** @throws CliError (usage) */
  constructor({ env, output }: Pick<CommandContext, 'env' | 'output'>) {
    this.options = {
      deadlineMs: deadlineOf(env),
      onSilence: (isSilent) => {
        this.#isSilent = isSilent;
        output.note(
          isSilent
            ? 'The agent server does not answer. Waiting for it; Ctrl-C stops waiting.'
            : 'The agent server answers again.',
        );
        if (isSilent) this.#leave(this.#interrupted);
      },
    };
  }

  /** Whether the user has ended the wait for the server of the present turn. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  #leave(server: AppServerClient | undefined): void {
    if (!server) return;
    this.#hasLeft = true;
    server.close();
  }

  /** Wraps a turn: its interruption ends the connection if the server is silent now, or as soon as it becomes silent. */
  watch(present: () => AppServerClient, turn: RunningTurn): RunningTurn {
    this.#interrupted = undefined;
    this.#hasLeft = false;
    return {
      threadId: turn.threadId,
      turnId: turn.turnId,
      [Symbol.asyncIterator]: () => turn[Symbol.asyncIterator](),
      interrupt: async () => {
        const server = present();
        this.#interrupted = server;
        if (this.#isSilent) this.#leave(server);
        else await turn.interrupt();
      },
    };
  }
}
