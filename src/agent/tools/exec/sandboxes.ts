import { randomUUID } from 'node:crypto';
import { findProgram } from '../../../lib/index.ts';
import { keptMarker, runProgram, sandboxLine } from '../../../supervise/index.ts';
import type { AdoptedSandboxes } from './adopted-sandboxes.ts';
import { newMarker } from './environment.ts';
import { takeOver } from './kept-command.ts';
import { isolation, mountsFor, type SandboxPlaces, sharedFloor } from './mounts.ts';
import { sandboxEndFile } from './mounts-record.ts';
import { type OpenMounts, openMounts } from './open-mounts.ts';
import { findBubblewrap } from './sandbox.ts';
import { enterSandbox, type GuardedSandbox, keyOf, type SandboxUse } from './sandbox-use.ts';
import { Sandbox, type SandboxFiles, type SandboxPrograms } from './shared-sandbox.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** A sandbox of this server. */
interface OwnSandbox extends GuardedSandbox {
  readonly mounts: OpenMounts;
}

/** Sandboxes of conversations: one for each, from the first command of a turn to the end of its last command. */
export class Sandboxes {
  readonly #environment: Environment;
  readonly #taken: AdoptedSandboxes | undefined;
  readonly #sandboxes = new Map<string, Promise<OwnSandbox>>();
  #programs: Promise<SandboxPrograms | undefined> | undefined;
  #isClosed = false;

  /** @param taken sandboxes of an earlier server, which commands may also enter */
  constructor(environment: Environment, taken?: AdoptedSandboxes) {
    this.#environment = environment;
    this.#taken = taken;
  }

  /** Resolves when commands may run outside of sandboxes: see `AdoptedSandboxes`. */
  get swept(): Promise<unknown> {
    return this.#taken?.swept ?? Promise.resolve();
  }

  /** Whether this machine can create sandboxes. Tried once. */
  async areAvailable(): Promise<boolean> {
    return (await this.#available()) !== undefined;
  }

  /**
   * Enters the sandbox of a conversation. Changed mounts require a new sandbox, as soon as no command is in the old one.
   *
   * @returns undefined if this machine cannot create sandboxes
   */
  async enter(threadId: string, places: SandboxPlaces): Promise<SandboxUse | undefined> {
    const programs = await this.#available();
    if (!programs || this.#isClosed) return undefined;
    const known = this.#sandboxes.get(threadId);
    const old = await known?.catch(() => undefined);
    if (old?.sandbox.isOpen && (old.sandbox.users > 0 || keyNow(places, old) === old.key))
      return this.#enterSandbox(old, programs, threadId);
    const taken = this.#taken?.sandboxesOf(threadId).find((each) => keyNow(places, each) === each.key);
    if (taken) return enterSandbox(taken, programs, async () => this.#taken?.settle());
    if (this.#sandboxes.get(threadId) === known) this.#sandboxes.delete(threadId);
    await closeSandbox(old);
    // Another call may have created a sandbox during the wait.
    if (this.#sandboxes.has(threadId)) return this.enter(threadId, places);
    const made = this.#open(programs, places);
    this.#sandboxes.set(threadId, made);
    try {
      return this.#enterSandbox(await made, programs, threadId);
    } catch {
      if (this.#sandboxes.get(threadId) === made) this.#sandboxes.delete(threadId);
      return undefined;
    }
  }

  #enterSandbox(own: OwnSandbox, programs: SandboxPrograms, threadId: string): SandboxUse {
    return enterSandbox(own, programs, async () => {
      if (own.mounts.isBrief) await this.endIdle(threadId);
    });
  }

  async #open(programs: SandboxPrograms, places: SandboxPlaces): Promise<OwnSandbox> {
    const id = randomUUID();
    const mounts = await openMounts(places, id);
    const words = [...sharedFloor, ...isolation(places.network), ...mounts.words];
    const files = mounts.isStored ? filesOf(places, id) : undefined;
    const marker = files && places.kept !== undefined ? keptMarker(places.kept, id) : newMarker(this.#environment);
    try {
      const sandbox = await Sandbox.open(programs, words, marker, files);
      return { id, key: keyOf(places, mounts.mounts.plan, mounts.fingerprint()), mounts, sandbox, running: 0 };
    } catch (error) {
      await mounts.close();
      throw error;
    }
  }

  /** Ends the sandbox of a conversation and all its processes. */
  async end(threadId: string): Promise<void> {
    await Promise.all([this.#endOwn(threadId), this.#taken?.end(threadId)]);
  }

  async #endOwn(threadId: string): Promise<void> {
    const known = this.#sandboxes.get(threadId);
    this.#sandboxes.delete(threadId);
    await closeSandbox(await known?.catch(() => undefined));
  }

  /** Ends the sandbox of a conversation unless a command is in it. */
  async endIdle(threadId: string): Promise<void> {
    const opened = await this.#sandboxes.get(threadId)?.catch(() => undefined);
    if (opened?.sandbox.users === 0) await this.#endOwn(threadId);
  }

  /** Ends all sandboxes and opens no further ones. Commands of an earlier server continue to run. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#sandboxes.keys()].map((threadId) => this.#endOwn(threadId)));
    this.#taken?.handOver();
  }

  #available(): Promise<SandboxPrograms | undefined> {
    this.#programs ??= trySharing(this.#environment);
    return this.#programs;
  }
}

async function closeSandbox(opened: OwnSandbox | undefined): Promise<void> {
  await opened?.sandbox.close();
  await opened?.mounts.close();
}

/** Key that a new sandbox for these places would have. */
function keyNow(places: SandboxPlaces, { mounts }: GuardedSandbox | OwnSandbox): string {
  // Git directories contain no sockets of services.
  const { plan } = 'mounts' in mounts ? mounts.mounts : mountsFor(places, []);
  return keyOf(places, plan, mounts.fingerprint());
}

/** Files of a sandbox that may outlive this server. Undefined: the sandbox ends with this server. */
function filesOf({ workspacePath, records, kept }: SandboxPlaces, id: string): SandboxFiles | undefined {
  if (records === undefined || kept === undefined) return undefined;
  takeOver(kept);
  return { line: sandboxLine(kept, id), end: sandboxEndFile({ records, kept, workspacePath }, id) };
}

/** Whether the programs are installed and a command can enter a sandbox, which some kernels and containers forbid. */
async function trySharing(environment: Environment): Promise<SandboxPrograms | undefined> {
  const bubblewrap = await findBubblewrap(environment, 'deny');
  const path = environment['PATH'];
  const [nsenter, setpriv] = [findProgram('nsenter', path), findProgram('setpriv', path)];
  if ('problem' in bubblewrap || nsenter === undefined || setpriv === undefined) return undefined;
  const programs = { bubblewrap: bubblewrap.program, nsenter, setpriv };
  try {
    const sandbox = await Sandbox.open(programs, [...sharedFloor, ...isolation('deny')], newMarker(environment));
    const [program = '', ...args] = [...sandbox.words(programs), '/bin/sh', '-c', 'exit 0'];
    const { exitCode } = await runProgram({ program, args, env: {}, timeoutMs: 10_000 }).finally(() => sandbox.close());
    return exitCode === 0 ? programs : undefined;
  } catch {
    return undefined;
  }
}
