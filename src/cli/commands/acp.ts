import { Console } from 'node:console';
import { runAcp, throughHub } from '../../acp/index.ts';
import { createLogger, levelOf } from '../../log/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';

/** `oratorio acp`: speaks to an editor on standard input and output until it goes, or the process is told to end. */
export async function run({ home, env, options }: CommandContext): Promise<number> {
  // Whatever a library has to say: standard output belongs to the protocol.
  globalThis.console = new Console(process.stderr, process.stderr);
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ending.abort());
  await runAcp({
    input: process.stdin,
    output: process.stdout,
    connect: throughHub({ home, env, autoStart: options['start'] !== false }),
    home,
    log: createLogger({ name: 'acp', level: levelOf(env) }),
    signal: ending.signal,
  });
  return exitCodes.ok.code;
}
