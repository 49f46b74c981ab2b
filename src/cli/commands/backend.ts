import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createLogger } from '../../log/index.ts';
import { type Backend, BackendError, startBackend } from '../../review/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { showPage } from '../page.ts';
import { portOf } from '../port.ts';
import { stateDirectoryOf } from './backend-api.ts';

/** `oratorio backend`: serves until it is stopped. */
export async function run(context: CommandContext): Promise<number> {
  const { output } = context;
  const stop = stopSignal(context.signal);
  try {
    if (context.options['demo'] === true) return await runDemo(context, stop.asked);
    const backend = await start(context);
    try {
      if (output.json) output.jsonLine({ url: backend.url, pid: process.pid });
      else output.line(`Review backend on ${backend.url}`);
      await printPage(context, backend);
      await stop.asked;
    } finally {
      await backend.close();
    }
    return exitCodes.ok.code;
  } finally {
    stop.release();
  }
}

/** Shows a whole review of the bundled repository until it is stopped, then removes everything. */
async function runDemo(context: CommandContext, asked: Promise<void>): Promise<number> {
  const { output, options } = context;
  for (const other of ['config', 'state', 'host', 'role'])
    if (options[other] !== undefined)
      throw usageError(`--demo brings its own settings: leave out --${other}.`, 'backend');
  const { startReviewDemo } = await import('../demo.ts');
  const port = typeof options['port'] === 'string' ? portOf(options['port'], 'backend') : 0;
  const demo = await orProblem(startReviewDemo(context, port));
  try {
    const { backend, title, pullUrl } = demo;
    if (output.json) output.jsonLine({ url: backend.url, pid: process.pid, demo: true });
    else {
      output.line(`Demo review backend on ${backend.url} (model: demo, offline, no AI; nothing leaves this machine)`);
      output.line(`  reviews      “${title}”, a change of a bundled repository`);
      output.line(`  publishes to ${pullUrl}`);
    }
    const page = { address: backend.pageUrl ?? backend.url, token: backend.token() };
    await showPage({ ...context, home: demo.home }, page);
    if (!output.json) output.line(output.colors.dim('Ctrl-C ends it and leaves nothing.'));
    await asked;
  } finally {
    await demo.close();
  }
  return exitCodes.ok.code;
}

/** Prints the address with its token on a terminal or with `--print-url`, because the address opens the page. */
async function printPage(context: CommandContext, { pageUrl, token }: Backend): Promise<void> {
  const { output, options } = context;
  const isAsked = options['open'] === true || options['print-url'] === true;
  const isWatched = output.isTTY && !output.json;
  if (pageUrl === undefined || !(isAsked || isWatched)) return;
  await showPage(context, { address: pageUrl, token: token() }, { opensByItself: false });
  if (isWatched) output.line(output.colors.dim('Ctrl-C stops it.'));
}

const start = (context: CommandContext): Promise<Backend> =>
  orProblem(startBackend({ ...placesOf(context), logger: createLogger({ name: 'backend' }) }));

/** @throws CliError for a BackendError */
async function orProblem<T>(starting: Promise<T>): Promise<T> {
  try {
    return await starting;
  } catch (error) {
    if (!(error instanceof BackendError)) throw error;
    const exit = error.code === 'addressInUse' ? 'precondition' : 'failure';
    throw new CliError(exit, error.message, error.hint, error.code);
  }
}

/** Places of settings and state. Options of the command line and the environment win over the file. */
function placesOf(context: CommandContext) {
  const { options, env, absolute } = context;
  const given = (name: string): string | undefined => {
    const value = options[name];
    return typeof value === 'string' ? value : undefined;
  };
  const port = given('port');
  const settings = [
    ['--port', 'Oratorio__Server__Port', port === undefined ? undefined : String(portOf(port, 'backend'))],
    ['--host', 'Oratorio__Server__Host', given('host')],
    ['--role', 'Oratorio__Server__Role', given('role')],
  ] as const;
  const set = settings.filter(([, , value]) => value !== undefined);
  const stateDirectory = stateDirectoryOf(context);
  return {
    stateDirectory,
    configFile: absolute(namedConfig(context) ?? join(stateDirectory, 'oratorio.config.json')),
    env: { ...env, ...Object.fromEntries(set.map(([, name, value]) => [name, value])) },
    options: new Map(set.map(([option, name]) => [name, option])),
  };
}

/** The settings file that an option or the environment names. @throws CliError when it is missing */
function namedConfig({ options, env, absolute }: CommandContext): string | undefined {
  const option = options['config'];
  const isOption = typeof option === 'string';
  const name = isOption ? option : env['ORATORIO_CONFIG_PATH'];
  if (name === undefined || name === '') return undefined;
  const file = absolute(name);
  if (existsSync(file)) return file;
  const by = isOption ? '--config' : 'ORATORIO_CONFIG_PATH';
  throw new CliError('usage', `${by} names ${file}, which does not exist.`, 'Create the file, or name another one.');
}

/** Resolves at SIGTERM or SIGINT, also before the backend serves, and at the end of the command. */
function stopSignal(signal: AbortSignal): { readonly asked: Promise<void>; readonly release: () => void } {
  const { promise: asked, resolve: stop } = Promise.withResolvers<void>();
  const ask = () => stop();
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, ask);
  signal.addEventListener('abort', ask, { once: true });
  if (signal.aborted) ask();
  return {
    asked,
    release() {
      signal.removeEventListener('abort', ask);
      for (const name of ['SIGTERM', 'SIGINT'] as const) process.off(name, ask);
    },
  };
}
