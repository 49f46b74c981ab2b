import { type HubOutcome, runHub } from '../../hub/index.ts';
import { createLogger } from '../../log/index.ts';
import { closeInherited } from '../../supervise/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';

/** `oratorio hub`: serves until it is stopped. */
export async function run({ home, env, output }: CommandContext): Promise<number> {
  closeInherited(env);
  const outcome = await runHub({
    home,
    environment: env,
    logger: createLogger({ name: 'hub' }),
    onServing: (apiBaseUrl) => output.line(`The Hub serves ${apiBaseUrl}`),
  });
  switch (outcome.kind) {
    case 'stopped':
      if (outcome.problem !== null) output.warn(`The Hub has stopped, but: ${outcome.problem}`);
      return outcome.problem === null ? exitCodes.ok.code : exitCodes.failure.code;
    case 'yielded':
      output.line(`Another Hub serves this user${describe(outcome)}.`);
      return exitCodes.ok.code;
    case 'failed':
      throw cannotRun(outcome.error);
  }
}

function cannotRun(error: string): CliError {
  const what = `The Hub cannot run: ${error}`;
  if (!/EADDRINUSE|EACCES/.test(error)) return new CliError('failure', what);
  return new CliError('precondition', what, 'See which program listens there: oratorio doctor. Or change Hub.Port.');
}

function describe({ to, pid }: Extract<HubOutcome, { kind: 'yielded' }>): string {
  return `${to ? ` at ${to.apiBaseUrl}` : ''}${pid === null ? '' : ` (process ${pid})`}`;
}
