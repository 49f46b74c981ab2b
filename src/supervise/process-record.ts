import { randomUUID } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { workspaceStateDirectory } from '../config/index.ts';
import { AtomicFile, readUntrustedJson } from '../lib/index.ts';
import { ProcessIdentity } from '../protocol/index.ts';
import { endControlGroup } from './control-group.ts';
import { Descendants } from './descendants.ts';
import { isAlive, ownIdentity } from './identity.ts';
import { removeStaleTemps } from './stale-temps.ts';

/** Limit of the file: no real agent has more processes than this. Further processes are found by their marker. */
const maxProcesses = 512;
/** Records that one sweep reads: each agent of a workspace has one. */
const maxRecords = 256;

/** Processes below an agent, for the program that ends them when the agent server cannot. */
const RecordedProcesses = v.object({
  version: v.literal(1),
  /** The agent server that writes: nothing is touched while it may live. */
  owner: ProcessIdentity,
  leader: ProcessIdentity,
  processes: v.pipe(v.array(ProcessIdentity), v.maxLength(maxProcesses)),
  /** Directory of their control group. */
  controlGroup: v.optional(v.string()),
});

/**
 * Directory of the records of a workspace's agents.
 *
 * @param canonicalPath of the workspace
 */
export const processRecords = (home: string, canonicalPath: string): string =>
  join(workspaceStateDirectory(home, canonicalPath), 'agent-processes');

/**
 * File of the processes that were seen below one agent: it outlives the agent server that watches them. Replaced whole, and
 * flushed never: after a power cut, the boot that it names is over.
 */
export class ProcessRecord {
  readonly #file: AtomicFile;
  readonly #owner = ownIdentity();
  readonly #onProblem: (error: unknown) => void;
  #written = '';
  #last: Promise<void> = Promise.resolve();

  /**
   * @param directory see `processRecords`
   * @param onProblem called when the file cannot be written; the processes are still known to this process
   */
  constructor(directory: string, onProblem: (error: unknown) => void) {
    this.#file = new AtomicFile(join(directory, `${randomUUID()}.json`), { isFlushed: false });
    this.#onProblem = onProblem;
  }

  /** Stores them, unless they are stored already. @param controlGroup its directory, where they have one */
  write(leader: ProcessIdentity, processes: readonly ProcessIdentity[], controlGroup?: string): void {
    const known = processes.slice(0, maxProcesses);
    const text = JSON.stringify({ version: 1, owner: this.#owner, leader, processes: known, controlGroup });
    if (text === this.#written) return;
    this.#written = text;
    this.#last = this.#store(text).catch((error: unknown) => {
      this.#written = '';
      this.#onProblem(error);
    });
  }

  /** Nothing is left of them. */
  async clear(): Promise<void> {
    await this.#last;
    this.#written = '';
    await rm(this.#file.path, { force: true }).catch(this.#onProblem);
  }

  async #store(text: string): Promise<void> {
    await mkdir(dirname(this.#file.path), { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    await this.#file.write(text);
  }
}

/**
 * Ends by SIGKILL the recorded processes of dead agent servers, their descendants and members of their control groups. A process
 * with another start time than recorded, or of another boot, is not touched. A record whose processes have gone is removed.
 *
 * @returns how many processes were alive
 */
export async function endRecorded(directory: string): Promise<number> {
  let ended = 0;
  for (const name of recordsIn(directory)) ended += await endOne(join(directory, name));
  return ended;
}

function recordsIn(directory: string): readonly string[] {
  try {
    removeStaleTemps(directory);
    return readdirSync(directory)
      .filter((name) => name.endsWith('.json'))
      .slice(0, maxRecords);
  } catch {
    // None was written, or none can be read: then none can be trusted.
    return [];
  }
}

async function endOne(file: string): Promise<number> {
  const record = readUntrustedJson(file, RecordedProcesses);
  if (record.kind !== 'ok') return 0;
  const { owner, leader, processes, controlGroup } = record.value;
  if (isAlive(owner) !== 'gone') return 0;
  const all = [leader, ...processes];
  const known = all.filter((each) => isAlive(each) === 'alive');
  if (known.length > 0) await new Descendants(leader, { known, isRecorded: true }).end();
  const isGroupGone = controlGroup === undefined || (await endControlGroup(controlGroup));
  if (isGroupGone && all.every((each) => isAlive(each) === 'gone')) rmSync(file, { force: true });
  return known.length;
}
