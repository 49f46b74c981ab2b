import { type ListenAddress, plainHost } from '../lib/index.ts';
import { StartupError } from './startup-error.ts';

export interface Arguments {
  readonly workspacePath: string;
  readonly isManaged: boolean;
  readonly listen: ListenAddress | undefined;
}

const usage = 'usage: oratorio app-server --workspace <dir> [--listen ws://host:port] [--managed]';

/** Reads the command line of the process, `--name value` or `--name=value`. By hand: `parseArgs` of Node costs 6 ms of every start. @throws StartupError (usage) */
export function parseArguments(argv: readonly string[]): Arguments {
  const values = new Map<string, string>();
  for (let at = 0; at < argv.length; at += 1) {
    const [, name = '', inline] = /^--([a-z]+)(?:=(.*))?$/s.exec(argv[at] ?? '') ?? [];
    if (name === 'managed' && inline === undefined) values.set(name, '');
    else if (name === 'workspace' || name === 'listen') {
      const value = inline ?? argv[++at];
      if (!value) throw new StartupError('usage', `--${name} needs a value; ${usage}`);
      values.set(name, value);
    } else throw new StartupError('usage', `unknown argument ${argv[at]}; ${usage}`);
  }
  const listen = values.get('listen');
  return {
    workspacePath: values.get('workspace') ?? process.cwd(),
    isManaged: values.has('managed'),
    listen: listen === undefined ? undefined : parseListen(listen),
  };
}

/** `ws://host:port` and nothing more. @throws StartupError (usage) */
export function parseListen(value: string): ListenAddress {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (
    url?.protocol !== 'ws:' ||
    url.hostname === '' ||
    !/^\/?$/.test(url.pathname) ||
    url.search + url.hash + url.username !== ''
  ) {
    throw new StartupError('usage', `--listen must be ws://host:port; ${usage}`);
  }
  // The URL standard leaves out port 80, the default of ws.
  const port = url.port === '' ? (/:80\/?$/.test(value) ? 80 : 0) : Number(url.port);
  return { host: plainHost(url.hostname), port };
}
