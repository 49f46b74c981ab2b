import { closeSync, existsSync, mkdirSync, openSync, readdirSync, rmSync, unlinkSync, writeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import { workspaceStateDirectory } from '../config/index.ts';
import { readBoundedFile, writeFileAtomic } from '../lib/index.ts';
import { ProcessIdentity } from '../protocol/index.ts';
import { monotonicMs } from './clock.ts';
import { isAlive, ownIdentity } from './identity.ts';
import { killMarked } from './marked.ts';
import { killGroupVerified } from './process-tree.ts';
import { isProvenOurs } from './proof.ts';
import { carries, scanProcesses } from './scan.ts';

/** Records that one listing reads: more commands are not kept at once. */
const maxRecords = 256;
const idForm = /^[0-9a-f-]{36}$/;
/** Time limit in milliseconds for the end of sandboxes without a command. */
const sandboxEndMs = 1_000;

/** Sandbox that a kept command has entered. It stays open as long as a keeper of its commands runs. */
export const KeptSandbox = v.object({
  id: v.pipe(v.string(), v.regex(idForm)),
  /** First process of the sandbox. */
  pid: v.pipe(v.number(), v.integer(), v.minValue(2)),
  startedTicks: v.string(),
  hasNetwork: v.boolean(),
  /** Hash of the mounts: a sandbox with another key has other mounts. */
  key: v.string(),
});
export type KeptSandbox = v.InferOutput<typeof KeptSandbox>;

/** A command that outlives its agent server, written before it starts. The keeper is the shell that waits for it. */
export const KeptCommand = v.object({
  version: v.literal(1),
  id: v.pipe(v.string(), v.regex(idForm)),
  /** Agent server that started it. */
  starter: ProcessIdentity,
  threadId: v.string(),
  turnId: v.string(),
  callId: v.string(),
  /** Milliseconds since the epoch. */
  startedAt: v.number(),
  /** Null: it runs until it is stopped. */
  timeoutMs: v.nullable(v.number()),
  /** Background process, with the command that the model wrote. */
  background: v.optional(v.object({ id: v.string(), command: v.string() })),
  /** Workspace in whose sandbox the command runs. Absent: it runs without a sandbox. */
  walls: v.optional(v.string()),
  room: v.optional(KeptSandbox),
});
export type KeptCommand = v.InferOutput<typeof KeptCommand>;

/** Files of a kept command. */
export interface KeptFiles {
  /** The record as one line of JSON. Lines of the agent server and of the keeper follow: see `readKept`. */
  readonly record: string;
  /** Raw output: not masked. */
  readonly output: string;
  /** Exists when the beginning of the output was removed. */
  readonly cut: string;
  /** Named pipe to the standard input of a background process. */
  readonly input: string;
  /** Standard error of the programs that start a sandboxed command. */
  readonly errors: string;
}

/**
 * Directory of the kept commands of a workspace.
 *
 * @param canonicalPath of the workspace
 */
export const keptDirectory = (home: string, canonicalPath: string): string =>
  join(workspaceStateDirectory(home, canonicalPath), 'kept-commands');

/** Marker of a kept command: outside of every incarnation, so that the end of an agent server does not end it. */
export const keptMarker = (directory: string, id = ''): string =>
  `keep/${basename(dirname(directory))}${id === '' ? '' : `/${id}`}`;

export const keptFiles = (directory: string, id: string): KeptFiles => ({
  record: join(directory, `${id}.kept`),
  output: join(directory, `${id}.out`),
  cut: join(directory, `${id}.cut`),
  input: join(directory, `${id}.in`),
  errors: join(directory, `${id}.err`),
});

/** Named pipe that keepers hold open. The sandbox ends when the last keeper closes it. */
export const sandboxLine = (directory: string, id: string): string => join(directory, `${id}.line`);

/** File that names the agent server that owns the kept commands: keepers read it after the death of theirs. */
export const keptOwner = (directory: string): string => join(directory, 'owner');

/** Makes this process the owner of the kept commands. Makes the directory if it is missing. */
export function ownKept(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const { pid, startedTicks } = ownIdentity();
  writeFileAtomic(keptOwner(directory), `${pid} ${startedTicks}\n`, { isFlushed: false });
}

/**
 * Writes a record. Not flushed: after a power cut, the boot that it names is over.
 *
 * @returns descriptor of the file, for further lines
 */
export function writeKept(directory: string, command: KeptCommand): number {
  const fd = makeKeptFile(keptFiles(directory, command.id).record);
  writeSync(fd, `${JSON.stringify(command)}\n`);
  return fd;
}

/** Adds the identity of the keeper to a record. */
export function writeKeeper(fd: number, { pid, startedTicks }: ProcessIdentity): void {
  writeSync(fd, `keeper ${pid} ${startedTicks}\n`);
}

/** Removes a kept command's files. */
export function removeKept(directory: string, id: string): void {
  const { record, output, ...rare } = keptFiles(directory, id);
  for (const file of [output, record]) removeFile(file);
  for (const file of Object.values(rare)) if (existsSync(file)) rmSync(file, { force: true });
}

/** Removes a file. `unlinkSync` is faster than `rmSync` for a file that exists. */
function removeFile(file: string): void {
  try {
    unlinkSync(file);
  } catch {
    rmSync(file, { recursive: true, force: true });
  }
}

/** A record with the lines that follow it. */
export interface ReadCommand {
  readonly command: KeptCommand;
  /** Absent: the agent server died before it knew the keeper. */
  readonly keeper?: ProcessIdentity;
  /** Characters of the output of a background process that were read. */
  readonly readChars: number;
  /** Whole lines of the keeper. */
  readonly lines: readonly string[];
}

/** Reads a record. Undefined for a file that is missing, incomplete or not ours. */
export function readKept(directory: string, id: string): ReadCommand | undefined {
  let text: string | undefined;
  try {
    text = readBoundedFile(keptFiles(directory, id).record);
  } catch {
    return undefined;
  }
  const [first = '', ...rest] = (text ?? '').split('\n').slice(0, -1);
  const read = v.safeParse(v.pipe(v.string(), v.parseJson(), KeptCommand), first);
  if (!read.success || read.output.id !== id) return undefined;
  const command = read.output;
  const [, pid, startedTicks] = rest.map((line) => /^keeper (\d+) (\S*)$/.exec(line)).find((found) => found) ?? [];
  const { bootId, pidNamespace } = command.starter;
  return {
    command,
    lines: rest.filter((line) => !/^(?:keeper|read) /.test(line)),
    readChars: Math.max(0, ...rest.map((line) => Number(/^read (\d+)$/.exec(line)?.[1] ?? 0))),
    ...(pid !== undefined && startedTicks && { keeper: { pid: Number(pid), startedTicks, bootId, pidNamespace } }),
  };
}

/** Kept commands of a workspace, oldest first. Records that cannot be read are left out. */
export function listKept(directory: string): readonly KeptCommand[] {
  return namesIn(directory)
    .filter((name) => name.endsWith('.kept'))
    .slice(0, maxRecords)
    .flatMap((name) => readKept(directory, basename(name, '.kept'))?.command ?? [])
    .sort((one, other) => one.startedAt - other.startedAt);
}

/**
 * Keeper of a command. Its identity, or its marker where it died before it was recorded, proves that it is ours: another process
 * with its number is `gone`.
 */
export async function findKeeper(
  directory: string,
  command: KeptCommand,
): Promise<ProcessIdentity | 'gone' | 'unknown'> {
  const marker = keptMarker(directory, command.id);
  const keeper = readKept(directory, command.id)?.keeper;
  if (keeper) {
    const state = isAlive(keeper);
    return state !== 'alive' ? state : isProvenOurs(keeper, marker) ? keeper : 'gone';
  }
  const { bootId, pidNamespace } = command.starter;
  const marked = (await scanProcesses()).filter((entry) => !entry.zombie && carries(entry, marker));
  // The watch of a sandboxed command also leads a group, and is a child of the keeper.
  const found = marked.find(({ pid, group, parent }) => pid === group && !marked.some((each) => each.pid === parent));
  return found ? { pid: found.pid, startedTicks: found.startedTicks, bootId, pidNamespace } : 'gone';
}

/** Ends a kept command with all its descendants, by SIGKILL. @returns number of ended processes */
export async function endKeptCommand(directory: string, command: KeptCommand): Promise<number> {
  const marker = keptMarker(directory, command.id);
  const keeper = await findKeeper(directory, command);
  if (keeper === 'unknown') return 0;
  const group = keeper === 'gone' ? undefined : await killGroupVerified(keeper, marker);
  const ended = (group?.ended ?? 0) + (await killMarked(marker));
  if (!group?.remaining.length) removeKept(directory, command.id);
  return ended;
}

/**
 * Ends all kept commands of a workspace, and removes their files: when no agent server will adopt them.
 *
 * @returns number of ended processes
 */
export async function endKept(directory: string): Promise<number> {
  let ended = 0;
  for (const command of listKept(directory)) ended += await endKeptCommand(directory, command);
  if (namesIn(directory).length === 0) return ended;
  // A sandbox reports its end, for the check of git directories.
  await withoutSandboxes(directory);
  ended += await killMarked(keptMarker(directory));
  rmSync(directory, { recursive: true, force: true });
  return ended;
}

/** Removes the lines of ended sandboxes. @param open ids of sandboxes that are still open */
export function removeSandboxLines(directory: string, open: ReadonlySet<string | undefined>): void {
  for (const name of namesIn(directory).filter((each) => each.endsWith('.line')))
    if (!open.has(basename(name, '.line'))) rmSync(join(directory, name), { recursive: true, force: true });
}

/** Waits briefly for the sandboxes of ended commands to end. */
async function withoutSandboxes(directory: string): Promise<void> {
  const late = monotonicMs() + sandboxEndMs;
  const isHeld = async () =>
    (await scanProcesses()).some((entry) => !entry.zombie && carries(entry, keptMarker(directory)));
  while (namesIn(directory).some((name) => name.endsWith('.line')) && monotonicMs() < late && (await isHeld()))
    await sleep(10);
}

/** Makes a private file that must be missing. @returns its descriptor, for reading and appending */
export const makeKeptFile = (path: string): number => openSync(path, 'ax+', 0o600);

/** Marks the output as cut. */
export const markCut = (files: KeptFiles): void => closeSync(openSync(files.cut, 'a', 0o600));

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    // No command has outlived a server here.
    return [];
  }
}
