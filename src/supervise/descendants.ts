import { setTimeout as sleep } from 'node:timers/promises';
import { defaults, type ProcessIdentity } from '../protocol/index.ts';
import { monotonicMs } from './clock.ts';
import { identityOf, isAlive } from './identity.ts';
import type { ProcessEntry } from './procfs.ts';
import { readProcesses } from './scan.ts';
import { signalProcess } from './signals.ts';

const keyOf = ({ pid, startedTicks }: Pick<ProcessIdentity, 'pid' | 'startedTicks'>): string =>
  `${pid} ${startedTicks}`;

export interface DescendantsOptions {
  /** Seen earlier. */
  readonly known?: readonly ProcessIdentity[];
  /** Read from a record of another process: the leader's number may have led another session since. The leader is ended too. */
  readonly isRecorded?: boolean;
  /** Called after each poll. */
  readonly onPoll?: (known: readonly ProcessIdentity[]) => void;
}

/**
 * The descendants of a session leader that were seen at any time, also those that left its group and cleared
 * their environment. A process is one of them while its parent is one, and while it is in the session; once seen it is known by
 * its number and start time, also after its parents' end. A double fork between two looks, into a session of its own, escapes.
 */
export class Descendants {
  readonly #leader: ProcessIdentity;
  readonly #known = new Map<string, ProcessIdentity>();
  readonly #isRecorded: boolean;
  readonly #onPoll: (known: readonly ProcessIdentity[]) => void;

  constructor(leader: ProcessIdentity, { known = [], isRecorded = false, onPoll = () => {} }: DescendantsOptions = {}) {
    this.#leader = leader;
    this.#isRecorded = isRecorded;
    this.#onPoll = onPoll;
    for (const each of known) this.#known.set(keyOf(each), each);
  }

  /** Descendants found by the last poll. */
  get known(): readonly ProcessIdentity[] {
    return [...this.#known.values()];
  }

  /** Polls the process table. Returns the running descendants. */
  async poll(): Promise<readonly ProcessIdentity[]> {
    const living = (await readProcesses()).filter(({ zombie }) => !zombie);
    const found = this.#among(living);
    this.#known.clear();
    for (const entry of found) this.#known.set(keyOf(entry), identityOf(entry));
    this.#onPoll(this.known);
    return this.known;
  }

  /** Ends all of them by SIGKILL, but a leader only if it is recorded. @returns those that are left when the deadline is over */
  async end(): Promise<readonly ProcessIdentity[]> {
    const deadline = monotonicMs() + defaults.supervise.killVerifyMs;
    for (;;) {
      const before = this.known;
      const living = await this.poll();
      for (const each of living) signalProcess(each, 'SIGKILL');
      // A dying process is no longer listed, but its threads still hold its files and ports.
      const left = [...before, ...living].filter((each) => isAlive(each) === 'alive');
      if (left.length === 0 || monotonicMs() > deadline) return left;
      await sleep(10);
    }
  }

  #among(living: readonly ProcessEntry[]): readonly ProcessEntry[] {
    const leader = living.find(({ pid }) => pid === this.#leader.pid);
    const isLeaderAlive = leader !== undefined && this.#isLeader(leader);
    const isKnown = (entry: ProcessEntry) => this.#known.has(keyOf(entry));
    // Another process with the number of a dead leader may lead another session. While the session has a member, none does.
    const isSessionOurs = this.#isRecorded
      ? living.some((entry) => entry.session === this.#leader.pid && (isKnown(entry) || this.#isLeader(entry)))
      : leader === undefined || isLeaderAlive;
    const ours = new Map<number, ProcessEntry>();
    for (const entry of living) {
      if (isKnown(entry) || (isSessionOurs && entry.session === this.#leader.pid)) ours.set(entry.pid, entry);
    }
    for (let size = -1; size !== ours.size; ) {
      size = ours.size;
      for (const entry of living) {
        const isChild = ours.has(entry.parent) || (isLeaderAlive && entry.parent === this.#leader.pid);
        if (isChild) ours.set(entry.pid, entry);
      }
    }
    if (!this.#isRecorded) ours.delete(this.#leader.pid);
    return [...ours.values()];
  }

  #isLeader({ pid, startedTicks }: ProcessEntry): boolean {
    return pid === this.#leader.pid && startedTicks === this.#leader.startedTicks;
  }
}
