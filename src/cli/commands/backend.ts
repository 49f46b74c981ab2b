import { join, resolve } from 'node:path';
import { createLogger } from '../../log/index.ts';
import { type Backend, BackendError, startBackend } from '../../review/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { portOf } from '../serve.ts';

/** `oratorio backend`: serves until it is told to stop. */
export async function run(context: CommandContext): Promise<number> {
  const { output } = context;
  const stop = stopSignal();
  try {
    const backend = await start(context);
    if (output.json) output.jsonLine({ url: backend.url, pid: process.pid });
    else output.line(`Review backend on ${backend.url}`);
    await stop.asked;
    await backend.close();
    return exitCodes.ok.code;
  } finally {
    stop.letGo();
  }
}

async function start(context: CommandContext): Promise<Backend> {
  try {
    return await startBackend({ ...placesOf(context), logger: createLogger({ name: 'backend' }) });
  } catch (error) {
    if (!(error instanceof BackendError)) throw error;
    throw new CliError('failure', error.message, error.hint, error.code);
  }
}

/** Where settings and state are. Options of the command line win over the file, as the environment does. */
function placesOf({ options, env, cwd, home }: CommandContext) {
  const given = (name: string): string | undefined => {
    const value = options[name];
    return typeof value === 'string' ? value : undefined;
  };
  const port = given('port');
  const settings = {
    Oratorio__Server__Port: port === undefined ? undefined : String(portOf(port, 'backend')),
    Oratorio__Server__Host: given('host'),
    Oratorio__Server__Role: given('role'),
  };
  const stateDirectory = resolve(cwd, given('state') ?? (env['ORATORIO_STATE_ROOT'] || join(home, 'backend')));
  return {
    stateDirectory,
    configFile: resolve(cwd, given('config') ?? join(stateDirectory, 'oratorio.config.json')),
    env: { ...env, ...Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)) },
  };
}

/** SIGTERM and SIGINT, also before it serves. */
function stopSignal(): { readonly asked: Promise<void>; readonly letGo: () => void } {
  const { promise: asked, resolve: stop } = Promise.withResolvers<void>();
  const ask = () => stop();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, ask);
  return {
    asked,
    letGo() {
      for (const signal of ['SIGTERM', 'SIGINT'] as const) process.off(signal, ask);
    },
  };
}
