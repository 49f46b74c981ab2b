import { Console } from 'node:console';
import { Writable } from 'node:stream';
import { hasModel, runAcp, throughHub } from '../../acp/index.ts';
import { visible } from '../../lib/index.ts';
import { createLogger, levelOf } from '../../log/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';

/** `oratorio acp`: speaks to an editor on standard input and output until the editor disconnects or a signal ends the process. */
export async function run(context: CommandContext): Promise<number> {
  const { home, env, options } = context;
  if (options['login'] === true) return (await import('./login.ts')).run(context);
  // Libraries print to standard error: standard output belongs to the protocol.
  const aside = visibleError();
  globalThis.console = new Console(aside, aside);
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ending.abort());
  const log = createLogger({ name: 'acp', level: levelOf(env) });
  await runAcp({
    input: process.stdin,
    output: process.stdout,
    connect: throughHub({
      home,
      env,
      autoStart: options['start'] !== false,
      onWarning: (warning) => log.warn(warning),
    }),
    isLoggedIn: () => hasModel(home, env),
    home,
    log,
    signal: ending.signal,
  });
  return exitCodes.ok.code;
}

/** Standard error for text of libraries, which may quote a peer. */
const visibleError = (): Writable =>
  new Writable({
    decodeStrings: false,
    write(chunk, _, done) {
      process.stderr.write(visible(String(chunk)));
      done();
    },
  });
