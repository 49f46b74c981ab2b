import { type Stats, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { sandboxStateOf, sandboxStatus, trySandbox } from '../../agent/index.ts';
import { trustFile, userConfigFile } from '../../config/index.ts';
import { httpLibrary } from '../../http/index.ts';
import { findProgram } from '../../lib/index.ts';
import { version } from '../../protocol/index.ts';
import { damagedRecords } from '../../supervise/index.ts';
import { quoted } from '../errors.ts';
import { pageOpener } from '../page.ts';
import { type DoctorContext, fail, ok, type Seen, skip, type WithConfig, warn } from './finding.ts';

const megabyte = 1_000_000;
/** A turn writes its trace before it answers: with less than this it soon fails. */
const leastFreeBytes = 200 * megabyte;
const lowFreeBytes = 1_000 * megabyte;

const statOf = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false });

export function node(): Seen {
  return ok(
    'machine.node',
    `Node ${process.versions.node} runs Oratorio ${version} on ${process.platform}-${process.arch}`,
  );
}

export async function http(): Promise<Seen> {
  const { library, reason } = await httpLibrary();
  if (reason === undefined) return ok('machine.http', `requests are served by ${library}`);
  return warn('machine.http', `uWebSockets.js does not load, so node:http serves, which is slower: ${reason}`);
}

/** The nearest directory above a path that exists. */
function existing(path: string): string {
  return statOf(path) || dirname(path) === path ? path : existing(dirname(path));
}

export function disk({ home }: DoctorContext): Seen {
  const { bavail, bsize } = statfsSync(existing(home));
  const free = bavail * bsize;
  const saw = `${Math.round(free / megabyte).toLocaleString('en-GB')} MB are free`;
  const detail = { where: home, next: `du -sh ${quoted(home)}/*` };
  if (free < leastFreeBytes) return fail('machine.disk', saw, detail);
  return free < lowFreeBytes ? warn('machine.disk', saw, detail) : ok('machine.disk', saw);
}

/** Directories and files that hold tokens, keys and decisions are this user's alone. */
export function home({ home }: DoctorContext): Seen[] {
  const found = statOf(home);
  if (!found) return [skip('home.rights', `there is no ${home} yet`, { next: 'oratorio up --init' })];
  const owner = process.getuid?.();
  if (owner !== undefined && found.uid !== owner)
    return [
      fail('home.rights', `${home} belongs to user ${found.uid}`, {
        where: home,
        next: 'Set ORATORIO_HOME to a directory of your own',
      }),
    ];
  const open = [home, join(home, 'hub'), userConfigFile(home), trustFile(home)].filter(
    (path) => ((statOf(path)?.mode ?? 0) & 0o077) !== 0,
  );
  if (open.length === 0) return [ok('home.rights', `${home} is yours alone`)];
  return open.map((path) => {
    const mode = statOf(path)?.isDirectory() ? '700' : '600';
    return fail('home.rights', 'other users can read it', { where: path, next: `chmod ${mode} ${quoted(path)}` });
  });
}

/** Records that a Hub of this home has found damaged. */
export function list({ home }: DoctorContext): Seen[] {
  return damagedRecords(home).map(({ what, where, next }) => warn('home.list', what, { where, next }));
}

export async function sandbox({ env }: DoctorContext, { config }: WithConfig): Promise<Seen> {
  const { Sandbox, Network } = config.Tools.Shell;
  const { mode, available, reason } = await sandboxStatus(Sandbox, env, Network);
  if (available) return ok('machine.sandbox', `commands of the agent run in a sandbox (${reason})`);
  const where = 'Tools.Shell.Sandbox';
  if (mode === 'off') return warn('machine.sandbox', 'commands of the agent run without a sandbox', { where });
  const next = process.platform === 'linux' ? 'Install bubblewrap, e.g.: apt-get install bubblewrap' : null;
  const saw = `no sandbox: ${reason}`;
  return mode === 'required'
    ? fail('machine.sandbox', saw, { where, next })
    : warn('machine.sandbox', saw, { where, next });
}

/** Tries the sandbox with the places of one workspace: a place that cannot be mounted ends every command. */
export async function workspaceSandbox(
  { env, home }: DoctorContext,
  { config }: WithConfig,
  workspace: string,
): Promise<Seen> {
  const id = 'sandbox';
  if (config.Tools.Shell.Sandbox === 'off') return skip(id, 'Tools.Shell.Sandbox is off');
  const { BlockedPaths: blockedPaths } = config.Permissions;
  const settings = { blockedPaths, home, passEnvironment: [], secrets: [], environment: env, tools: config.Tools };
  const status = await trySandbox(settings, workspace);
  const { state, reason } = sandboxStateOf(status);
  if (state === 'on') return ok(id, 'the sandbox of its commands can be made');
  if (state === 'off') return skip(id, `no sandbox: ${reason}`);
  const next = 'Correct the place that the message names, or set Tools.Shell.Sandbox to "off"';
  return fail(id, `commands are refused: ${reason}`, { where: 'Tools.Shell.Sandbox', next });
}

export function browser({ env }: DoctorContext): Seen {
  const { command } = pageOpener();
  if (findProgram(command, env['PATH'], []) !== undefined) return ok('machine.browser', `${command} opens pages`);
  return warn('machine.browser', `${command}, which opens pages, is not installed`, {
    next: 'oratorio inspect --print-url',
  });
}
