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
        if (isSilent) this.#interrupted?.close();
      },
    };
  }

  /** Wraps a turn: its interruption ends the connection if the server is silent now, or as soon as it becomes silent. */
  watch(server: AppServerClient, turn: RunningTurn): RunningTurn {
    this.#interrupted = undefined;
    return {
      threadId: turn.threadId,
      turnId: turn.turnId,
      [Symbol.asyncIterator]: () => turn[Symbol.asyncIterator](),
      interrupt: async () => {
        this.#interrupted = server;
        if (this.#isSilent) server.close();
        else await turn.interrupt();
      },
    };
  }
}
